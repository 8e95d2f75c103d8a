// As part_q4_0.wgsl, for Q8_0: four lanes share a block, each has two words of signed bytes.
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 128.0;
const CHUNK: u32 = 256u;
const CHUNK_BYTES: u32 = 272u;
const QUADS: u32 = 2u;
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return lane * 8u + i * 4u; }
fn prepare() {}
fn part(at: u32, lane: u32) -> f32 {
  let b = at + (lane >> 2u) * 34u;
  let across = (b & 2u) == 0u;
  let head = w[b >> 2u];
  let d = unpack2x16float(select(head >> 16u, head, across)).x;
  let i = (b >> 2u) + (lane & 3u) * 2u;
  let w0 = w[i];
  let w1 = w[i + 1u];
  let w2 = w[i + 2u];
  let q0 = select(w1, (w0 >> 16u) | (w1 << 16u), across);
  let q1 = select(w2, (w1 >> 16u) | (w2 << 16u), across);
  return d * (dot(byte_codes(q0 ^ 0x80808080u), xr[0]) + dot(byte_codes(q1 ^ 0x80808080u), xr[1]));
}
