// Functions of one complex element, re and im (spec 10, 4.2). The formulas are those of the oracle, scaled so that
// nothing leaves the range of f32 on the way.
// @include "scalar.wgsl"

fn c_mul(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
fn c_div(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  let size = max(abs(b.x), abs(b.y));
  let u = b / size;
  let norm = u.x * u.x + u.y * u.y;
  return vec2<f32>((a.x * u.x + a.y * u.y) / norm / size, (a.y * u.x - a.x * u.y) / norm / size);
}
fn c_eq(a: vec2<f32>, b: vec2<f32>) -> bool { return f_eq(a.x, b.x) && f_eq(a.y, b.y); }

fn c_exp(z: vec2<f32>) -> vec2<f32> {
  let r = f_exp(z.x);
  return vec2<f32>(r * f_cos(z.y), r * f_sin(z.y));
}

// The angle of (x, y), with the sides of the negative axis told apart by the sign of y.
fn f_atan2(y: f32, x: f32) -> f32 {
  if (nan_of(x) || nan_of(y)) { return x + y; }
  let a = abs(x);
  let b = abs(y);
  let negative = (bitcast<u32>(x) >> 31u) == 1u;
  var angle = 0.0;
  if (inf_of(x) && inf_of(y)) { angle = 0.78539816; }
  else if (b > a) { angle = 1.5707963 - f_atan(a / b); }
  else if (a > 0.0) { angle = f_atan(b / a); }
  if (negative) { angle = 3.1415927 - angle; }
  return select(angle, -angle, (bitcast<u32>(y) >> 31u) == 1u);
}
fn c_log(z: vec2<f32>) -> vec2<f32> {
  let big = max(abs(z.x), abs(z.y));
  let small = min(abs(z.x), abs(z.y));
  var size = f_log(big);
  if (big > 0.5 && big < 2.0) {
    // Near the circle log(big) and log(1 + …) cancel: log1p of |z|^2 - 1.
    let d = (big - 1.0) * (big + 1.0) + small * small;
    let u = 1.0 + d;
    size = 0.5 * select(f_log(u) * d / (u - 1.0), d, u == 1.0);
  } else if (big > 0.0 && !inf_of(big)) {
    let q = small / big;
    let d = q * q;
    let u = 1.0 + d;
    size += 0.5 * select(f_log(u) * d / (u - 1.0), d, u == 1.0);
  }
  if (!inf_of(z.x) && !inf_of(z.y) && (nan_of(z.x) || nan_of(z.y))) { size = z.x + z.y; }
  return vec2<f32>(size, f_atan2(z.y, z.x));
}
// On the negative real axis the root is on the positive imaginary one, whatever the sign of the zero.
fn c_sqrt(z: vec2<f32>) -> vec2<f32> {
  let big = max(abs(z.x), abs(z.y));
  if (big == 0.0) { return vec2<f32>(0.0, 0.0); }
  let u = z / big;
  let root = sqrt(big);
  let w = sqrt((sqrt(u.x * u.x + u.y * u.y) + abs(u.x)) * 0.5);
  let other = abs(u.y) / (2.0 * w);
  let below = z.y < 0.0;
  if (z.x >= 0.0) { return vec2<f32>(root * w, select(root * other, -(root * other), below)); }
  return vec2<f32>(root * other, select(root * w, -(root * w), below));
}
