// Four neighbours in a row of rhs, BF16 as it lies in a file: two words hold four. Rows are made of fours.
// @include "matmul_params.wgsl"
alias R = vec2<u32>;
@group(0) @binding(1) var<storage, read>       rhs: array<R>;
fn rhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  if (c < end) {
    let w = rhs[p.rhs_base + (at + c) / 4u];
    v = bitcast<vec4f>(vec4u(w.x << 16u, w.x & 0xffff0000u, w.y << 16u, w.y & 0xffff0000u));
  }
  return v;
}
