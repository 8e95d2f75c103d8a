// Codes of floats: clamp(round(x / scale) + zero, low, high), where the scale is one for all, one per index of an axis or
// one per block of it. NaN gives the zero point. One thread per element.
// @include "scalar.wgsl"
// @include "quotient.wgsl"
// @include "linear_scales.wgsl"
alias T = f32;                      // @type f32 | f16
alias S = f32;                      // @type f32 | f16
alias Z = i32;                      // @type i32 | u32
alias Q = i32;                      // @type i32 | u32
override HAS_ZERO: bool = false;
override ROUND_QUOTIENT: bool = false;  // the exact quotient is rounded, not its nearest f32

struct Params {
  n: u32,
  cols: u32,          // elements along the axis
  inner: u32,         // and behind it
  block: u32,         // indices of the axis per scale
  blocks: u32,        // scales along the axis
  own: u32,           // 1: every (outer, inner) has scales of its own
  low: i32,           // unsigned codes: as bits
  high: i32,
  x_base: u32,
  scale_base: u32,
  zero_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       scale: array<S>;
@group(0) @binding(2) var<storage, read>       zero: array<Z>;
@group(0) @binding(3) var<storage, read_write> y: array<Q>;
@group(0) @binding(4) var<uniform>             p: Params;

// code + zero, held to low … high, all of which fit i32, without overflow on the way.
fn shifted(code: f32, zero_point: i32) -> i32 {
  if (abs(code) < 2147483648.0) {
    let whole = i32(code);
    if (zero_point > 0 && whole > 2147483647 - zero_point) { return p.high; }
    if (zero_point < 0 && whole < -2147483647 - zero_point) { return p.low; }
    return clamp(whole + zero_point, p.low, p.high);
  }
  // A zero point of the other sign may bring back what has 32 bits without its sign.
  let far = select(p.high, p.low, code < 0.0);
  if (abs(code) >= 4294967296.0 || (zero_point < 0) == (code < 0.0)) { return far; }
  let left = u32(abs(code)) - u32(abs(zero_point));   // -2^31 is its own magnitude, as bits
  if (left > select(2147483647u, 2147483648u, code < 0.0)) { return far; }
  return clamp(select(i32(left), i32(0u - left), code < 0.0), p.low, p.high);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.x + id.y * groups.x * 256u;
  if (i >= p.n) { return; }
  let at = scale_index(i);
  let v = f32(x[p.x_base + i]);
  let s = f32(scale[p.scale_base + at]);
  var z = 0;
  if (HAS_ZERO) { z = i32(zero[p.zero_base + at]); }
  var code = 0.0;
  if (ROUND_QUOTIENT) { code = round_quotient(v, s); } else { code = round(f_div(v, s)); }
  y[p.y_base + i] = Q(select(shifted(code, z), clamp(z, p.low, p.high), nan_of(code)));
}
