// As part_q4_0.wgsl, for Q4_1: blocks are five words.
// @include "lanes_of_32.wgsl"
// @include "nibbles.wgsl"
const NIBBLE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 160u;
var<private> x_sum: f32;
fn prepare() { x_sum = dot(xr[0] + xr[1], vec4f(1.0)); }
fn part(at: u32, lane: u32) -> f32 {
  let i = (at >> 2u) + (lane >> 2u) * 5u;
  let head = unpack2x16float(w[i]);
  let q = w[i + 1u + (lane & 3u)];
  return head.x * (dot(low_nibbles(q), xr[0]) + dot(high_nibbles(q), xr[1])) + head.y * x_sum;
}
