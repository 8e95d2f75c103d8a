// As matmul_store_split, four columns in one store: every part is made of fours.
// @include "matmul_params.wgsl"
alias T = vec4<f32>;      // @type vec4<f32> | vec4<f16>
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<storage, read_write> y1: array<T>;
@group(0) @binding(5) var<storage, read_write> y2: array<T>;
@group(0) @binding(6) var<storage, read_write> y3: array<T>;
fn store4(at: u32, row: u32, c: u32, v: vec4f) {
  if (c >= p.n) { return; }
  if (c < p.start1) {
    if ((p.skip & 1u) == 0u) { y[p.y_base + (row * p.start1 + c) / 4u] = T(v); }
  } else if (c < p.start2) {
    if ((p.skip & 2u) == 0u) { y1[p.y1_base + (row * (p.start2 - p.start1) + c - p.start1) / 4u] = T(v); }
  } else if (c < p.start3) {
    if ((p.skip & 4u) == 0u) { y2[p.y2_base + (row * (p.start3 - p.start2) + c - p.start2) / 4u] = T(v); }
  } else {
    if ((p.skip & 8u) == 0u) { y3[p.y3_base + (row * (p.n - p.start3) + c - p.start3) / 4u] = T(v); }
  }
}
