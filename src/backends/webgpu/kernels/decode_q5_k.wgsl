// GGUF Q5_K: d, dmin, 12 bytes of six-bit scales and minima, 32 bytes of high bits, 128 bytes of nibbles.
// @include "bytes.wgsl"
// @include "six_bit.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 176u;
fn decode8(at: u32, e: u32) -> Eight {
  let s = e >> 5u;
  let l = e & 31u;
  let pair = scale_min(at + 4u, s);
  let d = half_at(at) * pair.x;
  let m = half_at(at + 2u) * pair.y;
  let start = at + 48u + 32u * (s >> 1u) + l;
  let shift = 4u * (s & 1u);
  let a = ((u32_at(start) >> shift) & 0x0f0f0f0fu) | (((u32_at(at + 16u + l) >> s) & 0x01010101u) << 4u);
  let b = ((u32_at(start + 4u) >> shift) & 0x0f0f0f0fu) | (((u32_at(at + 20u + l) >> s) & 0x01010101u) << 4u);
  return Eight(d * unsigned4(a) - m, d * unsigned4(b) - m);
}
