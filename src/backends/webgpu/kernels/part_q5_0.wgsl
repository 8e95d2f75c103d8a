// As part_q4_0.wgsl, for Q5_0: the fifth bits lie between the scale and the nibbles.
// @include "lanes_of_32.wgsl"
// @include "fives.wgsl"
const CHUNK_BYTES: u32 = 704u;
struct Raw {
  head: u32,
  bits: u32,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let b = at + lane * 22u;
  let i = b >> 2u;
  let head = w[i];
  let bits = w[i + 1u];
  let q = vec4u(w[i + 2u], w[i + 3u], w[i + 4u], w[i + 5u]);
  if ((b & 2u) != 0u) { return Raw(head >> 16u, bits, q); }
  return Raw(head, (head >> 16u) | (bits << 16u), (vec4u(bits, q.xyz) >> vec4u(16u)) | (q << vec4u(16u)));
}
fn part(raw: Raw, lane: u32) -> f32 {
  return unpack2x16float(raw.head).x * (0.125 * x_unit * signed_fives_by_x(raw.q, raw.bits));
}
