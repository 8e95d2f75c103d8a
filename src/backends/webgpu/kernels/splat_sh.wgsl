// The sixteen spherical harmonics at a unit direction.
alias Basis = array<f32, 16>;
fn basis_at(d: vec3<f32>) -> Basis {
  let q = d * d;
  var b: Basis;
  b[0] = 0.28209479;
  b[1] = -0.48860251 * d.y;
  b[2] = 0.48860251 * d.z;
  b[3] = -0.48860251 * d.x;
  b[4] = 1.0925484 * d.x * d.y;
  b[5] = -1.0925484 * d.y * d.z;
  b[6] = 0.31539157 * (2.0 * q.z - q.x - q.y);
  b[7] = -1.0925484 * d.x * d.z;
  b[8] = 0.54627422 * (q.x - q.y);
  b[9] = -0.59004359 * d.y * (3.0 * q.x - q.y);
  b[10] = 2.8906114 * d.x * d.y * d.z;
  b[11] = -0.45704580 * d.y * (4.0 * q.z - q.x - q.y);
  b[12] = 0.37317633 * d.z * (2.0 * q.z - 3.0 * q.x - 3.0 * q.y);
  b[13] = -0.45704580 * d.x * (4.0 * q.z - q.x - q.y);
  b[14] = 1.4453057 * d.z * (q.x - q.y);
  b[15] = -0.59004359 * d.x * (q.x - 3.0 * q.y);
  return b;
}
// The sum of their derivatives by x, y, z with weights.
fn slope_of(d: vec3<f32>, w: Basis) -> vec3<f32> {
  let q = d * d;
  var s = 0.48860251 * vec3<f32>(-w[3], -w[1], w[2]);
  s += 1.0925484 * (w[4] * vec3<f32>(d.y, d.x, 0.0) - w[5] * vec3<f32>(0.0, d.z, d.y) - w[7] * vec3<f32>(d.z, 0.0, d.x));
  s += 0.31539157 * w[6] * vec3<f32>(-2.0 * d.x, -2.0 * d.y, 4.0 * d.z);
  s += 0.54627422 * w[8] * vec3<f32>(2.0 * d.x, -2.0 * d.y, 0.0);
  s -= 0.59004359 * w[9] * vec3<f32>(6.0 * d.x * d.y, 3.0 * q.x - 3.0 * q.y, 0.0);
  s += 2.8906114 * w[10] * vec3<f32>(d.y * d.z, d.x * d.z, d.x * d.y);
  s -= 0.45704580 * w[11] * vec3<f32>(-2.0 * d.x * d.y, 4.0 * q.z - q.x - 3.0 * q.y, 8.0 * d.y * d.z);
  s += 0.37317633 * w[12] * vec3<f32>(-6.0 * d.x * d.z, -6.0 * d.y * d.z, 6.0 * q.z - 3.0 * q.x - 3.0 * q.y);
  s -= 0.45704580 * w[13] * vec3<f32>(4.0 * q.z - 3.0 * q.x - q.y, -2.0 * d.x * d.y, 8.0 * d.x * d.z);
  s += 1.4453057 * w[14] * vec3<f32>(2.0 * d.x * d.z, -2.0 * d.y * d.z, q.x - q.y);
  s -= 0.59004359 * w[15] * vec3<f32>(3.0 * q.x - 3.0 * q.y, -6.0 * d.x * d.y, 0.0);
  return s;
}
