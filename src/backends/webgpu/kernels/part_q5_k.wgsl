// As part_q4_k.wgsl, for Q5_K: 32 bytes of fifth bits lie in front of the nibbles, a bit of each byte for every group.
// @include "lanes_of_256.wgsl"
const CHUNK_BYTES: u32 = 704u;
struct Raw {
  head: vec4u,
  bits: vec4u,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 4u) + (lane >> 3u) * 11u;
  return Raw(w[i], w[i + 1u + (lane & 1u)], w[i + 3u + (lane & 7u)]);
}
fn part(raw: Raw, lane: u32) -> f32 {
  let pair = (lane >> 1u) & 3u;
  let bits = raw.bits >> vec4u(2u * pair);
  let low = (raw.q & vec4u(0x0f0f0f0fu)) | ((bits & vec4u(0x01010101u)) << vec4u(4u));
  let high = ((raw.q >> vec4u(4u)) & vec4u(0x0f0f0f0fu)) | ((bits & vec4u(0x02020202u)) << vec4u(3u));
  return block_by_x(raw.head, low, high, pair);
}
