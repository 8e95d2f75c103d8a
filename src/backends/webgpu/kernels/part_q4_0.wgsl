// What a lane of dequant_gemv_one.wgsl does, for Q4_0: four lanes share a block, each has a word of nibbles. Blocks start
// at even bytes: a word lies as it is, or across two.
// @include "nibbles.wgsl"
const NIBBLE_ZERO: f32 = 8.0;
const CHUNK: u32 = 256u;        // elements of a row that a team takes at a time
const CHUNK_BYTES: u32 = 144u;
const QUADS: u32 = 2u;          // a lane's part of them, in fours
// The first element of the lane's block: it is there or the whole block is not.
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return (lane >> 2u) * 32u + i * 16u + (lane & 3u) * 4u; }
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
