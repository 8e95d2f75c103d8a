// As part_q4_0.wgsl, for Q8_0: four lanes share a block, each has two words of signed bytes. Were a block a lane's alone,
// its words would lie so far from the neighbours' that reading them would take longer.
// @include "byte_codes.wgsl"
const BYTE_ZERO: f32 = 128.0;
const CHUNK: u32 = 256u;
const CHUNK_BYTES: u32 = 272u;
var<private> xq0: vec4f;
var<private> xq1: vec4f;
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn load_x(token: u32, first: u32, lane: u32) {
  xq0 = x4(token, first + lane * 8u);
  xq1 = x4(token, first + lane * 8u + 4u);
}
struct Raw {
  head: u32,
  q: vec2u,
}
fn prepare() {}
fn fetch(at: u32, lane: u32) -> Raw {
  let b = at + (lane >> 2u) * 34u;
  let head = w[b >> 2u];
  let i = (b >> 2u) + (lane & 3u) * 2u;
  let q = vec3u(w[i], w[i + 1u], w[i + 2u]);
  if ((b & 2u) != 0u) { return Raw(head >> 16u, q.yz); }
  return Raw(head, (q.xy >> vec2u(16u)) | (q.yz << vec2u(16u)));
}
fn part(raw: Raw, lane: u32) -> f32 {
  return unpack2x16float(raw.head).x *
         (dot(byte_codes(raw.q.x ^ 0x80808080u), xq0) + dot(byte_codes(raw.q.y ^ 0x80808080u), xq1));
}
