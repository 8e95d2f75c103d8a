// As part_q4_0.wgsl, for Q6_K: eight lanes share a block, four a half of it. A lane has eight elements of each of the half's
// four groups of 32: two pairs of words of nibbles, and one of the pairs of bits above them.
// @include "x_in_registers.wgsl"
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 32.0;
const CHUNK_BYTES: u32 = 840u;
fn lane_first(lane: u32) -> u32 { return (lane >> 3u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 { return (lane >> 2u) * 128u + (i >> 1u) * 32u + (lane & 3u) * 8u + (i & 1u) * 4u; }
struct Raw {
  low: vec4u,     // nibbles: of the first and third group, of the second and fourth
  high: vec2u,
  scales: vec2u,  // eight bytes: two per group
  d: u32,
}
fn prepare() {}
// Two words from i on, or from its upper half on.
fn pair(i: u32, across: bool) -> vec2u {
  let words = vec2u(w[i], w[i + 1u]);
  if (!across) { return words; }
  return (words >> vec2u(16u)) | (vec2u(words.y, w[i + 2u]) << vec2u(16u));
}
fn fetch(at: u32, lane: u32) -> Raw {
  let b = at + (lane >> 3u) * 210u;
  let across = (b & 2u) != 0u;
  let i = b >> 2u;
  let half = (lane >> 2u) & 1u;
  let own = i + half * 16u + (lane & 3u) * 2u;
  let tail = w[(b + 208u) >> 2u];
  return Raw(vec4u(pair(own, across), pair(own + 8u, across)), pair(i + 32u + half * 8u + (lane & 3u) * 2u, across),
             pair(i + 48u + half * 2u, across), select(tail, tail >> 16u, across));
}
fn six(low: u32, high: u32) -> vec4f { return byte_codes((low & 0x0f0f0f0fu) | (high & 0x30303030u)); }
fn signed_byte(word: u32, i: u32) -> f32 { return f32((bitcast<i32>(word) << (24u - 8u * i)) >> 24u); }
fn part(raw: Raw, lane: u32) -> f32 {
  let low = raw.low;
  let high = raw.high;
  let g = (lane & 3u) >> 1u;
  let first = dot(six(low.x, high.x << 4u), xq0) + dot(six(low.y, high.y << 4u), xq1);
  let second = dot(six(low.z, high.x << 2u), xq2) + dot(six(low.w, high.y << 2u), xq3);
  let third = dot(six(low.x >> 4u, high.x), xq4) + dot(six(low.y >> 4u, high.y), xq5);
  let fourth = dot(six(low.z >> 4u, high.x >> 2u), xq6) + dot(six(low.w >> 4u, high.y >> 2u), xq7);
  return unpack2x16float(raw.d).x * (signed_byte(raw.scales.x, g) * first + signed_byte(raw.scales.x, g + 2u) * second +
                                     signed_byte(raw.scales.y, g) * third + signed_byte(raw.scales.y, g + 2u) * fourth);
}
