// What a lane of dequant_gemv_one.wgsl does, for Q4_0: a lane has a word of nibbles. Blocks start at even bytes: a word lies
// as it is, or across two.
// @include "lanes_of_32.wgsl"
// @include "nibbles.wgsl"
const NIBBLE_ZERO: f32 = 8.0;
const CHUNK_BYTES: u32 = 144u;
fn prepare() {}
fn part(at: u32, lane: u32) -> f32 {
  let b = at + (lane >> 2u) * 18u;
  let i = b >> 2u;
  let across = (b & 2u) == 0u;
  let head = w[i];
  let d = unpack2x16float(select(head >> 16u, head, across)).x;
  let low = w[i + (lane & 3u)];
  let high = w[i + (lane & 3u) + 1u];
  let q = select(high, (low >> 16u) | (high << 16u), across);
  return d * (dot(low_nibbles(q), xr[0]) + dot(high_nibbles(q), xr[1]));
}
