// GGUF Q8_1: d, a sum that is not needed, 32 signed bytes.
// @include "bytes.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 36u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let q = signed8_at(at + 4u + e);
  return Eight(d * q.a, d * q.b);
}
