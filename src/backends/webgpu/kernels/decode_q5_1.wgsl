// GGUF Q5_1: d, m, 32 high bits, 16 bytes of nibbles.
// @include "bytes.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 24u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let m = half_at(at + 2u);
  let high = u32_at(at + 4u) >> e;
  let q = nibbles8_at(at + 8u, e);
  return Eight(d * (q.a + 16.0 * bits4(high)) + m, d * (q.b + 16.0 * bits4(high >> 4u)) + m);
}
