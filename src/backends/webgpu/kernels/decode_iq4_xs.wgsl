// GGUF IQ4_XS: d, 16 bits and 4 bytes of six-bit scales, 128 bytes of nibbles that choose a level.
// @include "bytes.wgsl"
// @include "iq4.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 136u;
fn decode8(at: u32, e: u32) -> Eight {
  let i = e >> 5u;
  let low = (u8_at(at + 4u + (i >> 1u)) >> (4u * (i & 1u))) & 15u;
  let high = (u16_at(at + 2u) >> (2u * i)) & 3u;
  let d = half_at(at) * (f32(low + 16u * high) - 32.0);
  let q = nibbles8_at(at + 8u + 16u * i, e & 31u);
  return Eight(d * iq4_levels(q.a), d * iq4_levels(q.b));
}
