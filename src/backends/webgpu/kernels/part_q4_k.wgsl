// As part_q4_0.wgsl, for Q4_K. w is bound as quads of words.
// @include "nibbles.wgsl"
// @include "lanes_of_256.wgsl"
const NIBBLE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 576u;
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
