// As part_q4_0.wgsl, for Q4_1: blocks are five words.
// @include "lanes_of_32.wgsl"
// @include "nibble_blocks.wgsl"
const NIBBLE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 640u;
var<private> x_sum: f32;
struct Raw {
  head: u32,
  q: vec4u,
}
fn prepare() { x_sum = sum_of_x(); }
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 2u) + lane * 5u;
  return Raw(w[i], vec4u(w[i + 1u], w[i + 2u], w[i + 3u], w[i + 4u]));
}
fn part(raw: Raw, lane: u32) -> f32 {
  let head = unpack2x16float(raw.head);
  return head.x * nibbles_by_x(raw.q) + head.y * x_sum;
}
