// As part_q4_0.wgsl, for Q6_K: sixteen lanes share a block, each has eight bytes of nibbles: eight low ones of one group of
// 32 and eight high ones of the group two behind it.
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 32.0;
const CHUNK: u32 = 512u;
const CHUNK_BYTES: u32 = 420u;
const QUADS: u32 = 4u;
fn lane_first(lane: u32) -> u32 { return (lane >> 4u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 {
  return (lane >> 3u) * 128u + ((lane >> 2u) & 1u) * 32u + (lane & 3u) * 8u + (i >> 1u) * 64u + (i & 1u) * 4u;
}
fn prepare() {}
fn signed_byte_of(at: u32) -> f32 { return f32((bitcast<i32>(w[at >> 2u]) << (24u - 8u * (at & 3u))) >> 24u); }
fn part(at: u32, lane: u32) -> f32 {
  let b = at + (lane >> 4u) * 210u;
  let across = (b & 2u) != 0u;
  let half = (lane >> 3u) & 1u;
  let g = (lane >> 2u) & 1u;
  let i = (b >> 2u) + (lane & 15u) * 2u;
  let j = (b >> 2u) + 32u + half * 8u + (lane & 3u) * 2u;
  var low0 = w[i];
  var low1 = w[i + 1u];
  var high0 = w[j];
  var high1 = w[j + 1u];
  if (across) {
    low0 = (low0 >> 16u) | (low1 << 16u);
    low1 = (low1 >> 16u) | (w[i + 2u] << 16u);
    high0 = (high0 >> 16u) | (high1 << 16u);
    high1 = (high1 >> 16u) | (w[j + 2u] << 16u);
  }
  high0 = high0 >> (2u * g);
  high1 = high1 >> (2u * g);
  let scale_byte = b + 192u + 8u * half + 2u * g + ((lane & 3u) >> 1u);
  let tail = w[(b + 208u) >> 2u];
  let d = unpack2x16float(select(tail, tail >> 16u, across)).x;
  let first = dot(byte_codes((low0 & 0x0f0f0f0fu) | ((high0 & 0x03030303u) << 4u)), xr[0]) +
              dot(byte_codes((low1 & 0x0f0f0f0fu) | ((high1 & 0x03030303u) << 4u)), xr[1]);
  let second = dot(byte_codes(((low0 >> 4u) & 0x0f0f0f0fu) | (high0 & 0x30303030u)), xr[2]) +
               dot(byte_codes(((low1 >> 4u) & 0x0f0f0f0fu) | (high1 & 0x30303030u)), xr[3]);
  return d * (signed_byte_of(scale_byte) * first + signed_byte_of(scale_byte + 4u) * second);
}
