// GGUF Q4_K: d, dmin, 12 bytes of six-bit scales and minima, 128 bytes of nibbles.
// @include "bytes.wgsl"
// @include "six_bit.wgsl"
const BLOCK: u32 = 256u;
const BYTES: u32 = 144u;
fn decode8(at: u32, e: u32) -> Eight {
  let s = e >> 5u;
  let pair = scale_min(at + 4u, s);
  let d = half_at(at) * pair.x;
  let m = half_at(at + 2u) * pair.y;
  let start = at + 16u + 32u * (s >> 1u) + (e & 31u);
  let shift = 4u * (s & 1u);
  return Eight(d * unsigned4((u32_at(start) >> shift) & 0x0f0f0f0fu) - m,
               d * unsigned4((u32_at(start + 4u) >> shift) & 0x0f0f0f0fu) - m);
}
