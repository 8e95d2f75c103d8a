// Four neighbours in a row of rhs, BF16 as it lies in a file: two words hold four. Rows are made of fours.
// @include "matmul_params.wgsl"
alias R = vec2<u32>;
@group(0) @binding(1) var<storage, read>       rhs: array<R>;
fn rhs_in(at: u32, c: u32) -> vec4f {
  let w = rhs[p.rhs_base + (at + min(c, p.n - 4u)) / 4u];
  return bitcast<vec4f>(vec4u(w.x << 16u, w.x & 0xffff0000u, w.y << 16u, w.y & 0xffff0000u));
}
fn rhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  if (c < end) { v = rhs_in(at, c); }
  return v;
}
