// What a lane of dequant_gemv_one.wgsl does, for Q4_0. Blocks start at even bytes: their words lie as they are, or each
// across two.
// @include "lanes_of_32.wgsl"
// @include "nibbles.wgsl"
const CHUNK_BYTES: u32 = 576u;
struct Raw {
  head: u32,
  q: vec4u,
}
fn fetch(at: u32, lane: u32) -> Raw {
  let b = at + lane * 18u;
  let i = b >> 2u;
  let head = w[i];
  let q = vec4u(w[i + 1u], w[i + 2u], w[i + 3u], w[i + 4u]);
  if ((b & 2u) != 0u) { return Raw(head >> 16u, q); }
  return Raw(head, (vec4u(head, q.xyz) >> vec4u(16u)) | (q << vec4u(16u)));
}
fn part(raw: Raw, lane: u32) -> f32 {
  return unpack2x16float(raw.head).x * (0.0625 * x_unit * signed_nibbles_by_x(raw.q));
}
