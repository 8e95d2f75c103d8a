// Derivatives of activations, of one element (spec 10, 4.2).
// @include "scalar.wgsl"

// 1 - tanh(x)^2 as 4 e / (1 + e)^2 with e = exp(-2 |x|): nothing cancels.
fn d_tanh(x: f32) -> f32 {
  let e = exp(-2.0 * min(abs(x), 40.0));
  let s = 1.0 + e;
  return select(4.0 * e / (s * s), x, nan_of(x));
}
fn d_sqrt(x: f32) -> f32 {
  let root = sqrt(x);
  return select(0.0, 0.5 / root, root > 0.0 && !nan_of(x));
}
fn d_rsqrt(x: f32) -> f32 {
  let root = sqrt(x);
  return select(0.0, -0.5 / (x * root), root > 0.0 && !nan_of(x));
}
fn d_abs(x: f32) -> f32 { return select(select(0.0, -1.0, x < 0.0), 1.0, x > 0.0); }
fn d_gelu(x: f32) -> f32 {
  let density = 0.3989422804 * exp(-0.5 * min(x * x, 176.0));
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  // inf * 0 is NaN.
  return select(select(0.5 * (1.0 + f_erf(x * 0.70710678)) + x * density, zero / zero, inf_of(x)), x, nan_of(x));
}
fn d_silu(x: f32) -> f32 {
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  return select(f_sigmoid(x) * (1.0 + x * f_sigmoid(-x)), zero / zero, inf_of(x));
}
fn d_gelu_approx(x: f32) -> f32 {
  let u = 0.7978845608 * (x + 0.044715 * x * x * x);
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  let d = 0.5 * (1.0 + f_tanh(u)) + 0.5 * x * d_tanh(u) * 0.7978845608 * (1.0 + 0.134145 * x * x);
  return select(d, zero / zero, inf_of(x));
}
fn d_tan(x: f32) -> f32 { let t = f_tan(x); return 1.0 + t * t; }
fn d_atan(x: f32) -> f32 { return 1.0 / (1.0 + x * x); }
