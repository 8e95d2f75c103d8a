// GGUF Q3_K: 32 bytes of high bits, 64 bytes of two-bit codes, 12 bytes of six-bit scales, d.
// @include "bytes.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 110u;
fn decode8(at: u32, e: u32) -> Eight {
  let half = e >> 7u;
  let g = (e >> 5u) & 3u;
  let l = e & 31u;
  let i = 8u * half + 2u * g + (l >> 4u);
  let low = (u8_at(at + 96u + (i & 7u)) >> (4u * (i >> 3u))) & 15u;
  let high = (u8_at(at + 104u + (i & 3u)) >> (2u * (i >> 2u))) & 3u;
  let d = half_at(at + 108u) * (f32(low + 16u * high) - 32.0);
  let start = at + 32u + 32u * half + l;
  let bit = 4u * half + g;
  // A high bit that is not set takes 4 away.
  let a = unsigned4((u32_at(start) >> (2u * g)) & 0x03030303u) + 4.0 * unsigned4((u32_at(at + l) >> bit) & 0x01010101u);
  let b = unsigned4((u32_at(start + 4u) >> (2u * g)) & 0x03030303u) +
          4.0 * unsigned4((u32_at(at + l + 4u) >> bit) & 0x01010101u);
  return Eight(d * (a - 4.0), d * (b - 4.0));
}
