// As part_q4_1.wgsl, for Q5_1: blocks are six words, the second has the fifth bits.
// @include "lanes_of_32.wgsl"
// @include "byte_blocks.wgsl"
const BYTE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 768u;
var<private> x_sum: f32;
struct Raw {
  head: u32,
  bits: u32,
  q: vec4u,
}
fn prepare() { x_sum = sum_of_x(); }
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 2u) + lane * 6u;
  return Raw(w[i], w[i + 1u], vec4u(w[i + 2u], w[i + 3u], w[i + 4u], w[i + 5u]));
}
fn part(raw: Raw, lane: u32) -> f32 {
  let head = unpack2x16float(raw.head);
  return head.x * fives_by_x(raw.q, raw.bits) + head.y * x_sum;
}
