// Derivatives of activations, of one element (spec 10, 4.2).
// @include "scalar.wgsl"

// Beyond this x, derivatives of smooth steps are 0 or 1, which products with exponentials that are clamped are not.
fn near_zero(x: f32) -> f32 { return clamp(x, -104.0, 104.0); }
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
// Phi(x) + x phi(x), where both have one exponential.
fn d_gelu(x: f32) -> f32 {
  let c = near_zero(x);
  let a = abs(c);
  let tail = (0.5 * erfcx_of_positive(a * 0.70710678) - 0.3989422804 * a) * exp(-min(0.5 * c * c, 88.0));
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  return select(select(select(1.0 - tail, tail, x < 0.0), zero / zero, inf_of(x)), x, nan_of(x));  // inf * 0 is NaN
}
fn d_silu(x: f32) -> f32 {
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  let c = near_zero(x);
  return select(select(f_sigmoid(c) * (1.0 + c * f_sigmoid(-c)), zero / zero, inf_of(x)), x, nan_of(x));
}
fn d_gelu_approx(x: f32) -> f32 {
  let c = near_zero(x);
  let u2 = gelu_approx_exponent(c);
  let zero = bitcast<f32>(bitcast<u32>(x) & 0u);
  let d = f_sigmoid(u2) * (1.0 + c * f_sigmoid(-u2) * (1.5957691216 + 0.2140644488 * c * c));
  return select(select(d, zero / zero, inf_of(x)), x, nan_of(x));
}
fn d_tan(x: f32) -> f32 { let t = f_tan(x); return 1.0 + t * t; }
fn d_atan(x: f32) -> f32 { return 1.0 / (1.0 + x * x); }
