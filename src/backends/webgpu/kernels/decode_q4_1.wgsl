// GGUF Q4_1: d, m, 16 bytes of nibbles.
// @include "bytes.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 20u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let m = half_at(at + 2u);
  let q = nibbles8_at(at + 4u, e);
  return Eight(d * q.a + m, d * q.b + m);
}
