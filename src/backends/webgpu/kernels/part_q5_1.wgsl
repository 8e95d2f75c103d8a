// As part_q4_1.wgsl, for Q5_1: blocks are six words, the second has the fifth bits.
// @include "lanes_of_32.wgsl"
// @include "fives.wgsl"
const CHUNK_BYTES: u32 = 768u;
struct Raw {
  head: u32,
  bits: u32,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 2u) + lane * 6u;
  return Raw(w[i], w[i + 1u], vec4u(w[i + 2u], w[i + 3u], w[i + 4u], w[i + 5u]));
}
fn part(raw: Raw, lane: u32) -> f32 {
  let head = unpack2x16float(raw.head);
  return head.x * (0.125 * x_unit * signed_fives_by_x(raw.q, raw.bits)) + fma(head.x, 16.0, head.y) * (x_sums.x + x_sums.y);
}
