// Four neighbours in a row of the result in one store: rows are made of fours.
// @include "matmul_params.wgsl"
alias T = vec4<f32>;      // @type vec4<f32> | vec4<f16>
@group(0) @binding(3) var<storage, read_write> y: array<T>;
fn store4(at: u32, row: u32, c: u32, v: vec4f) {
  if (c < p.n) { y[p.y_base + (at + row * p.n + c) / 4u] = T(v); }
}
