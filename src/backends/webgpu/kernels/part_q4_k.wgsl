// As part_q4_0.wgsl, for Q4_K. w is bound as quads of words.
// @include "lanes_of_256.wgsl"
const CHUNK_BYTES: u32 = 576u;
struct Raw {
  head: vec4u,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let i = (at >> 4u) + (lane >> 3u) * 9u;
  return Raw(w[i], w[i + 1u + (lane & 7u)]);
}
fn part(raw: Raw, lane: u32) -> f32 {
  return block_by_x(raw.head, raw.q & vec4u(0x0f0f0f0fu), (raw.q >> vec4u(4u)) & vec4u(0x0f0f0f0fu), (lane >> 1u) & 3u);
}
