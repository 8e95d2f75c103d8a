// GGUF Q2_K: 16 bytes of scale and minimum, 64 bytes of two-bit codes, d, dmin.
// @include "bytes.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 84u;
fn decode8(at: u32, e: u32) -> Eight {
  let half = e >> 7u;
  let g = (e >> 5u) & 3u;
  let l = e & 31u;
  let c = u8_at(at + 8u * half + 2u * g + (l >> 4u));
  let d = half_at(at + 80u) * f32(c & 15u);
  let m = half_at(at + 82u) * f32(c >> 4u);
  let start = at + 16u + 32u * half + l;
  return Eight(d * unsigned4((u32_at(start) >> (2u * g)) & 0x03030303u) - m,
               d * unsigned4((u32_at(start + 4u) >> (2u * g)) & 0x03030303u) - m);
}
