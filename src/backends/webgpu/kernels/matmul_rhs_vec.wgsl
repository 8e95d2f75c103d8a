// Four neighbours in a row of rhs in one load: rows are made of fours.
// @include "matmul_params.wgsl"
alias R = vec4<f32>;      // @type vec4<f32> | vec4<f16>
@group(0) @binding(1) var<storage, read>       rhs: array<R>;
fn rhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  if (c < end) { v = vec4f(rhs[p.rhs_base + (at + c) / 4u]); }
  return v;
}
fn rhs_in(at: u32, c: u32) -> vec4f { return vec4f(rhs[p.rhs_base + (at + min(c, p.n - 4u)) / 4u]); }
