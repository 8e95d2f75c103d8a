// (q - zero) * scale, with scales as in quantize.wgsl. One thread per element.
// @include "linear_scales.wgsl"
alias T = f32;                      // @type f32 | f16
alias S = f32;                      // @type f32 | f16
alias Z = i32;                      // @type i32 | u32
alias Q = i32;                      // @type i32 | u32
override HAS_ZERO: bool = false;

struct Params {
  n: u32,
  cols: u32,
  inner: u32,
  block: u32,
  blocks: u32,
  own: u32,
  x_base: u32,
  scale_base: u32,
  zero_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<Q>;
@group(0) @binding(1) var<storage, read>       scale: array<S>;
@group(0) @binding(2) var<storage, read>       zero: array<Z>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let at = scale_index(i);
  let s = f32(scale[p.scale_base + at]);
  var value = 0.0;
  if (HAS_ZERO) {
    let z = i32(zero[p.zero_base + at]);
    let q = i32(x[p.x_base + i]);
    let difference = q - z;
    // Of 32-bit codes the difference may need 33 bits: as floats then.
    let overflows = ((q ^ z) & (q ^ difference)) < 0;
    value = select(f32(difference), f32(q) - f32(z), overflows) * s;
  } else {
    value = f32(x[p.x_base + i]) * s;
  }
  y[p.y_base + i] = T(value);
}
