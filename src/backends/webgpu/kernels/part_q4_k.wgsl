// As part_q4_0.wgsl, for Q4_K. w is bound as quads of words.
// @include "nibble_blocks.wgsl"
// @include "lanes_of_256.wgsl"
const NIBBLE_ZERO: f32 = 0.0;
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
  let d = unpack2x16float(raw.head.x);
  let s = scales_of(raw.head.yzw, (lane >> 1u) & 3u);
  return d.x * (s.x * low_by_x(raw.q) + s.y * high_by_x(raw.q)) - d.y * (s.z * x_sums.x + s.w * x_sums.y);
}
