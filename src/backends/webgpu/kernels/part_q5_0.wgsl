// As part_q4_0.wgsl, for Q5_0: the fifth bits lie between the scale and the nibbles.
// @include "lanes_of_32.wgsl"
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 16.0;
const CHUNK_BYTES: u32 = 176u;
fn prepare() {}
fn part(at: u32, lane: u32) -> f32 {
  let b = at + (lane >> 2u) * 22u;
  let i = b >> 2u;
  let across = (b & 2u) == 0u;
  let head = w[i];
  let second = w[i + 1u];
  let d = unpack2x16float(select(head >> 16u, head, across)).x;
  let bits = select(second, (head >> 16u) | (second << 16u), across) >> ((lane & 3u) * 4u);
  let low_word = w[i + 1u + (lane & 3u)];
  let high_word = w[i + 2u + (lane & 3u)];
  let q = select(high_word, (low_word >> 16u) | (high_word << 16u), across);
  let low = byte_codes((q & 0x0f0f0f0fu) | fifth_bits(bits));
  let high = byte_codes(((q >> 4u) & 0x0f0f0f0fu) | fifth_bits(bits >> 16u));
  return d * (dot(low, xr[0]) + dot(high, xr[1]));
}
