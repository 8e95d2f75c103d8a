// GGUF Q6_K: 128 bytes of nibbles, 64 bytes of two high bits, 16 signed scales, d.
// @include "bytes.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 210u;
fn decode8(at: u32, e: u32) -> Eight {
  let half = e >> 7u;
  let g = (e >> 5u) & 3u;
  let l = e & 31u;
  let scale = bitcast<i32>(u8_at(at + 192u + 8u * half + 2u * g + (l >> 4u)) << 24u) >> 24u;
  let d = half_at(at + 208u) * f32(scale);
  let low = at + 64u * half + 32u * (g & 1u) + l;
  let high = at + 128u + 32u * half + l;
  let shift = 4u * (g >> 1u);
  let a = ((u32_at(low) >> shift) & 0x0f0f0f0fu) | (((u32_at(high) >> (2u * g)) & 0x03030303u) << 4u);
  let b = ((u32_at(low + 4u) >> shift) & 0x0f0f0f0fu) | (((u32_at(high + 4u) >> (2u * g)) & 0x03030303u) << 4u);
  return Eight(d * (unsigned4(a) - 32.0), d * (unsigned4(b) - 32.0));
}
