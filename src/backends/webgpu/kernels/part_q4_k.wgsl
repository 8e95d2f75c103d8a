// As part_q4_0.wgsl, for Q4_K: eight lanes share a block, each has 16 bytes: 16 low nibbles of one group of 32 and 16 high
// ones of the next. w is bound as quads of words. The minima are met by sums of x that all rows share.
// @include "nibbles.wgsl"
// @include "six_bit_pairs.wgsl"
const NIBBLE_ZERO: f32 = 0.0;
const CHUNK: u32 = 1024u;
const CHUNK_BYTES: u32 = 576u;
const QUADS: u32 = 8u;
var<private> x_sums: vec2f;
fn lane_first(lane: u32) -> u32 { return (lane >> 3u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 {
  return (lane >> 3u) * 256u + ((lane >> 1u) & 3u) * 64u + (lane & 1u) * 16u + (i >> 2u) * 32u + (i & 3u) * 4u;
}
fn prepare() {
  x_sums = vec2f(dot(xr[0] + xr[1] + xr[2] + xr[3], vec4f(1.0)), dot(xr[4] + xr[5] + xr[6] + xr[7], vec4f(1.0)));
}
fn part(at: u32, lane: u32) -> f32 {
  let i = (at >> 4u) + (lane >> 3u) * 9u;
  let head = w[i];
  let q = w[i + 1u + (lane & 7u)];
  let d = unpack2x16float(head.x);
  let s = scales_of(head.yzw, (lane >> 1u) & 3u);
  let low = dot(low_nibbles(q.x), xr[0]) + dot(low_nibbles(q.y), xr[1]) + dot(low_nibbles(q.z), xr[2]) +
            dot(low_nibbles(q.w), xr[3]);
  let high = dot(high_nibbles(q.x), xr[4]) + dot(high_nibbles(q.y), xr[5]) + dot(high_nibbles(q.z), xr[6]) +
             dot(high_nibbles(q.w), xr[7]);
  return d.x * (s.x * low + s.y * high) - d.y * (s.z * x_sums.x + s.w * x_sums.y);
}
