// Floats rounded to the grid of their channel's scale, or the gradient of that. One thread per element.
// @include "scalar.wgsl"
// @include "quotient.wgsl"
alias T = f32;              // @type f32 | f16
alias S = f32;              // @type f32 | f16
override MODE: u32 = 0u;    // 0 forward; gradients: 1 identity, 2 clipped, 3 tanh, 4 hard tanh, 5 learned scale
override AT_LEAST: bool = false;  // a scale that is given is at least 1e-12

struct Params {
  n: u32,
  channels: u32,
  inner: u32,
  top: f32,           // largest code
  x_base: u32,
  dy_base: u32,
  scale_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       dy: array<T>;
@group(0) @binding(2) var<storage, read>       scale: array<S>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  var s = f32(scale[p.scale_base + i / p.inner % p.channels]);
  if (AT_LEAST && f_lt(s, 1.0e-12)) { s = 1.0e-12; }
  let v = f32(x[p.x_base + i]);
  if (MODE == 0u) {
    y[p.y_base + i] = T(f_max(f_min(round_quotient(v, s), p.top), -p.top) * s);
    return;
  }
  var slope = 1.0;
  // p.top * s is the largest magnitude itself: rounding must not push that element out.
  if (MODE == 2u) { slope = select(0.0, 1.0, abs(v) <= p.top * s * 1.000001); }
  if (MODE == 3u) {
    let t = f_tanh(v / s);
    slope = 1.0 - t * t;
  }
  if (MODE == 4u) {
    slope = 1.0 - abs(v / (p.top * s));
    slope = select(0.0, slope, f_lt(0.0, slope));  // NaN gives 0
  }
  if (MODE == 5u) {  // 0 outside, whatever dy is: selected, not multiplied
    y[p.y_base + i] = select(T(0.0), dy[p.dy_base + i], quotient_at_most(v, s, p.top));
    return;
  }
  y[p.y_base + i] = T(slope * f32(dy[p.dy_base + i]));
}
