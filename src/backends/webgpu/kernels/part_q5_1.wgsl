// As part_q4_1.wgsl, for Q5_1: blocks are six words, the second has the fifth bits.
// @include "lanes_of_32.wgsl"
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 192u;
var<private> x_sum: f32;
fn prepare() { x_sum = dot(xr[0] + xr[1], vec4f(1.0)); }
fn part(at: u32, lane: u32) -> f32 {
  let i = (at >> 2u) + (lane >> 2u) * 6u;
  let head = unpack2x16float(w[i]);
  let bits = w[i + 1u] >> ((lane & 3u) * 4u);
  let q = w[i + 2u + (lane & 3u)];
  let low = byte_codes((q & 0x0f0f0f0fu) | fifth_bits(bits));
  let high = byte_codes(((q >> 4u) & 0x0f0f0f0fu) | fifth_bits(bits >> 16u));
  return head.x * (dot(low, xr[0]) + dot(high, xr[1])) + head.y * x_sum;
}
