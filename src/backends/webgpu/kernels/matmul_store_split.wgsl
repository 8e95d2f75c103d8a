// The columns of a row go to up to four results: from 0, start1, start2 and start3 on.
// @include "matmul_params.wgsl"
alias T = f32;            // @type f32 | f16
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<storage, read_write> y1: array<T>;
@group(0) @binding(5) var<storage, read_write> y2: array<T>;
@group(0) @binding(6) var<storage, read_write> y3: array<T>;
fn store1(row: u32, c: u32, v: f32) {
  if (c >= p.n) { return; }
  if (c < p.start1) {
    if ((p.skip & 1u) == 0u) { y[p.y_base + row * p.start1 + c] = T(v); }
  } else if (c < p.start2) {
    if ((p.skip & 2u) == 0u) { y1[p.y1_base + row * (p.start2 - p.start1) + c - p.start1] = T(v); }
  } else if (c < p.start3) {
    if ((p.skip & 4u) == 0u) { y2[p.y2_base + row * (p.start3 - p.start2) + c - p.start2] = T(v); }
  } else {
    if ((p.skip & 8u) == 0u) { y3[p.y3_base + row * (p.n - p.start3) + c - p.start3] = T(v); }
  }
}
fn store4(at: u32, row: u32, c: u32, v: vec4f) {
  store1(row, c, v.x);
  store1(row, c + 1u, v.y);
  store1(row, c + 2u, v.z);
  store1(row, c + 3u, v.w);
}
