// As x_quads.wgsl, for rows that start anywhere and have any length.
@group(0) @binding(0) var<storage, read>       x: array<f32>;
fn x4(row: u32, k: u32) -> vec4f {
  let at = p.x_base + row * p.k + k;
  return vec4f(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
}
fn x4_or_zero(row: u32, k: u32) -> vec4f {
  if (row >= p.m || k >= p.k) { return vec4f(); }
  if (k + 4u <= p.k) { return x4(row, k); }
  let at = p.x_base + row * p.k + k;
  var v = vec4f(x[at], 0.0, 0.0, 0.0);
  if (k + 1u < p.k) { v.y = x[at + 1u]; }
  if (k + 2u < p.k) { v.z = x[at + 2u]; }
  return v;
}
