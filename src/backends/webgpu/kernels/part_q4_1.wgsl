// As part_q4_0.wgsl, for Q4_1: blocks are five words.
// @include "lanes_of_32.wgsl"
// @include "nibbles.wgsl"
const CHUNK_BYTES: u32 = 640u;
struct Raw {
  head: u32,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 2u) + lane * 5u;
  return Raw(w[i], vec4u(w[i + 1u], w[i + 2u], w[i + 3u], w[i + 4u]));
}
fn part(raw: Raw, lane: u32) -> f32 {
  let head = unpack2x16float(raw.head);
  return head.x * (x_unit * nibbles_by_x(raw.q)) + head.y * (x_sums.x + x_sums.y);
}
