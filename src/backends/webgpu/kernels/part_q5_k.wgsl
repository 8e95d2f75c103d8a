// As part_q4_k.wgsl, for Q5_K: 32 bytes of fifth bits lie in front of the nibbles, a bit of each byte for every group.
// @include "byte_codes.wgsl"
// @include "lanes_of_256.wgsl"
const BYTE_ZERO: f32 = 0.0;
const CHUNK_BYTES: u32 = 704u;
fn part(at: u32, lane: u32) -> f32 {
  let i = (at >> 4u) + (lane >> 3u) * 11u;
  let pair = (lane >> 1u) & 3u;
  let head = w[i];
  let bits = w[i + 1u + (lane & 1u)] >> vec4u(2u * pair);
  let q = w[i + 3u + (lane & 7u)];
  let d = unpack2x16float(head.x);
  let s = scales_of(head.yzw, pair);
  let l = (q & vec4u(0x0f0f0f0fu)) | ((bits & vec4u(0x01010101u)) << vec4u(4u));
  let h = ((q >> vec4u(4u)) & vec4u(0x0f0f0f0fu)) | ((bits & vec4u(0x02020202u)) << vec4u(3u));
  let low = dot(byte_codes(l.x), xr[0]) + dot(byte_codes(l.y), xr[1]) + dot(byte_codes(l.z), xr[2]) +
            dot(byte_codes(l.w), xr[3]);
  let high = dot(byte_codes(h.x), xr[4]) + dot(byte_codes(h.y), xr[5]) + dot(byte_codes(h.z), xr[6]) +
             dot(byte_codes(h.w), xr[7]);
  return d.x * (s.x * low + s.y * high) - d.y * (s.z * x_sums.x + s.w * x_sums.y);
}
