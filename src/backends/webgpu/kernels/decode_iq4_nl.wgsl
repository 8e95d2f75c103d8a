// GGUF IQ4_NL: d, 16 bytes of nibbles that choose a level.
// @include "bytes.wgsl"
// @include "iq4.wgsl"
const BLOCK: u32 = 32u;
const BYTES: u32 = 18u;
fn decode8(at: u32, e: u32) -> Eight {
  let d = half_at(at);
  let q = nibbles8_at(at + 2u, e);
  return Eight(d * iq4_levels(q.a), d * iq4_levels(q.b));
}
