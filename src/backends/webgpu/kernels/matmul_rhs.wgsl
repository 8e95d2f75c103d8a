// Four neighbours in a row of rhs, one by one: element at + c and on; those from `end` on are 0.
// @include "matmul_params.wgsl"
alias R = f32;            // @type f32 | f16
@group(0) @binding(1) var<storage, read>       rhs: array<R>;
fn rhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  let i = p.rhs_base + at + c;
  if (c < end) { v.x = f32(rhs[i]); }
  if (c + 1u < end) { v.y = f32(rhs[i + 1u]); }
  if (c + 2u < end) { v.z = f32(rhs[i + 2u]); }
  if (c + 3u < end) { v.w = f32(rhs[i + 3u]); }
  return v;
}
// The same of a row that is there; what lies behind its end is anything.
fn rhs_in(at: u32, c: u32) -> vec4f { return rhs4(at, c, p.n); }
