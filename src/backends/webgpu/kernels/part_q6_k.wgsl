// As part_q4_0.wgsl, for Q6_K: eight lanes share a block, four a half of it. A lane has eight elements of each of the half's
// four groups of 32: two pairs of words of nibbles, and one of the pairs of bits above them.
// @include "x_digits.wgsl"
const CHUNK_BYTES: u32 = 840u;
fn lane_first(lane: u32) -> u32 { return (lane >> 3u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 { return (lane >> 2u) * 128u + (i >> 1u) * 32u + (lane & 3u) * 8u + (i & 1u) * 4u; }
struct Raw {
  low: vec4u,     // nibbles: of the first and third group, of the second and fourth
  high: vec2u,
  scales: vec2u,  // eight bytes: two per group
  d: u32,
}
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
// Codes less 32, in the upper six bits of a byte: sums are four times as large. The first bits of `high` are turned already.
fn six(low: vec2u, high: vec2u) -> vec2u { return (low & vec2u(0x3c3c3c3cu)) | (high & vec2u(0xc0c0c0c0u)); }
fn first2(c: vec2u, x: Digits16) -> vec3i {
  return vec3i(products2(c, x.high.xy), products2(c, x.middle.xy), products2(c, x.low.xy));
}
fn last2(c: vec2u, x: Digits16) -> vec3i {
  return vec3i(products2(c, x.high.zw), products2(c, x.middle.zw), products2(c, x.low.zw));
}
fn signed_byte(word: u32, i: u32) -> i32 { return (bitcast<i32>(word) << (24u - 8u * i)) >> 24u; }
fn part(raw: Raw, lane: u32) -> f32 {
  let q = raw.low;
  let h = raw.high ^ vec2u(0xaaaaaaaau);
  let g = (lane & 3u) >> 1u;
  let first = first2(six(q.xy << vec2u(2u), h << vec2u(6u)), x0);
  let second = last2(six(q.zw << vec2u(2u), h << vec2u(4u)), x0);
  let third = first2(six(q.xy >> vec2u(2u), h << vec2u(2u)), x1);
  let fourth = last2(six(q.zw >> vec2u(2u), h), x1);
  let n = signed_byte(raw.scales.x, g) * first + signed_byte(raw.scales.x, g + 2u) * second +
          signed_byte(raw.scales.y, g) * third + signed_byte(raw.scales.y, g + 2u) * fourth;
  return unpack2x16float(raw.d).x * (0.25 * x_unit * number(n));
}
