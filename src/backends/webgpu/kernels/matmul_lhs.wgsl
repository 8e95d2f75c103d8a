// Four neighbours in a row of lhs, one by one: element at + c and on; those from `end` on are 0.
// @include "matmul_params.wgsl"
alias L = f32;            // @type f32 | f16
@group(0) @binding(0) var<storage, read>       lhs: array<L>;
fn lhs4(at: u32, c: u32, end: u32) -> vec4f {
  var v = vec4f();
  let i = p.lhs_base + at + c;
  if (c < end) { v.x = f32(lhs[i]); }
  if (c + 1u < end) { v.y = f32(lhs[i + 1u]); }
  if (c + 2u < end) { v.z = f32(lhs[i + 2u]); }
  if (c + 3u < end) { v.w = f32(lhs[i + 3u]); }
  return v;
}
// The same of four that are there.
fn lhs_in(at: u32) -> vec4f {
  let i = p.lhs_base + at;
  return vec4f(f32(lhs[i]), f32(lhs[i + 1u]), f32(lhs[i + 2u]), f32(lhs[i + 3u]));
}
