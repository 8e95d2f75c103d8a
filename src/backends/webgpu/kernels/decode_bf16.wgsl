// Plain bfloat16 numbers, the upper halves of f32: a block is one element.
// @include "bytes.wgsl"
const BLOCK: u32 = 1u;
const BYTES: u32 = 2u;
fn uppers(at: u32) -> vec4f {
  let a = u32_at(at);
  let b = u32_at(at + 4u);
  return bitcast<vec4f>(vec4u(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}
fn decode8(at: u32, e: u32) -> Eight { return Eight(uppers(at), uppers(at + 8u)); }
