// Rows of x, p.k elements each, four elements a load; x_scalars.wgsl is for rows that do not lie at multiples of 16
// bytes.
@group(0) @binding(0) var<storage, read>       x: array<vec4<f32>>;
fn x4(row: u32, k: u32) -> vec4f { return x[p.x_base + (row * p.k + k) / 4u]; }
// 0 outside the matrix.
fn x4_or_zero(row: u32, k: u32) -> vec4f {
  if (row >= p.m || k >= p.k) { return vec4f(); }
  return x4(row, k);
}
