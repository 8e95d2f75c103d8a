// As part_q4_0.wgsl, for Q8_0: four lanes share a block, each has two words of signed bytes. Were a block a lane's alone,
// its words would lie so far from the neighbours' that reading them would take longer.
// @include "digits.wgsl"
const CHUNK: u32 = 256u;
const CHUNK_BYTES: u32 = 272u;
var<private> x0: Digits;
var<private> x1: Digits;
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn load_x(token: u32, first: u32, lane: u32) {
  let q0 = x4(token, first + lane * 8u);
  let q1 = x4(token, first + lane * 8u + 4u);
  set_unit(max(magnitude4(q0), magnitude4(q1)));
  x0 = digits4(q0);
  x1 = digits4(q1);
}
struct Raw {
  head: u32,
  q: vec2u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let b = at + (lane >> 2u) * 34u;
  let head = w[b >> 2u];
  let i = (b >> 2u) + (lane & 3u) * 2u;
  let q = vec3u(w[i], w[i + 1u], w[i + 2u]);
  if ((b & 2u) != 0u) { return Raw(head >> 16u, q.yz); }
  return Raw(head, (q.xy >> vec2u(16u)) | (q.yz << vec2u(16u)));
}
fn part(raw: Raw, lane: u32) -> f32 {
  let n = vec3i(dot4I8Packed(raw.q.x, x0.high) + dot4I8Packed(raw.q.y, x1.high),
                dot4I8Packed(raw.q.x, x0.middle) + dot4I8Packed(raw.q.y, x1.middle),
                dot4I8Packed(raw.q.x, x0.low) + dot4I8Packed(raw.q.y, x1.low));
  return unpack2x16float(raw.head).x * (x_unit * number(n));
}
