// As part_q4_0.wgsl, for Q8_0: four lanes share a block, each has two words of signed bytes.
const CHUNK: u32 = 256u;
const CHUNK_BYTES: u32 = 272u;
const QUADS: u32 = 2u;
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return lane * 8u + i * 4u; }
fn prepare() {}
// As digits of 2^23 + 128 + q: see nibbles.wgsl.
fn bytes_of(q: u32) -> vec4f {
  let shifted = q ^ 0x80808080u;
  return vec4f(bitcast<f32>((shifted & 0xffu) | 0x4b000000u) - 8388736.0,
               fma(bitcast<f32>((shifted & 0xff00u) | 0x4b000000u), 0.00390625, -32896.0),
               bitcast<f32>(((shifted >> 16u) & 0xffu) | 0x4b000000u) - 8388736.0,
               bitcast<f32>((shifted >> 24u) | 0x4b000000u) - 8388736.0);
}
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
  return d * (dot(bytes_of(q0), xr[0]) + dot(bytes_of(q1), xr[1]));
}
