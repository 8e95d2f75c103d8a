// Four neighbours in a row of the result, one by one: columns c and on of the row that starts at `at`.
// @include "matmul_params.wgsl"
alias T = f32;            // @type f32 | f16
@group(0) @binding(3) var<storage, read_write> y: array<T>;
fn store4(at: u32, row: u32, c: u32, v: vec4f) {
  let i = p.y_base + at + row * p.n + c;
  if (c < p.n) { y[i] = T(v.x); }
  if (c + 1u < p.n) { y[i + 1u] = T(v.y); }
  if (c + 2u < p.n) { y[i + 2u] = T(v.z); }
  if (c + 3u < p.n) { y[i + 3u] = T(v.w); }
}
