// Four neighbours in a row of lhs in one load: rows are made of fours.
// @include "matmul_params.wgsl"
alias L = vec4<f32>;      // @type vec4<f32> | vec4<f16>
@group(0) @binding(0) var<storage, read>       lhs: array<L>;
fn lhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  if (c < end) { v = vec4f(lhs[p.lhs_base + (at + c) / 4u]); }
  return v;
}
fn lhs_in(at: u32) -> vec4f { return vec4f(lhs[p.lhs_base + at / 4u]); }
