// GGUF Q5_0: d, 32 high bits, 16 bytes of nibbles.
// @include "bytes.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 22u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let high = u32_at(at + 2u) >> e;
  let q = nibbles8_at(at + 6u, e);
  return Eight(d * (q.a + 16.0 * bits4(high) - 16.0), d * (q.b + 16.0 * bits4(high >> 4u) - 16.0));
}
