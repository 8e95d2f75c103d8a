// The 32 elements of x that a lane of dequant_gemv_one.wgsl has, as digits.wgsl has them.
// @include "digits.wgsl"
const CHUNK: u32 = 1024u;    // elements of a row that a team takes at a time
var<private> x0: Digits16;
var<private> x1: Digits16;
var<private> x_sums: vec2f;  // of the first and the last 16
fn load_x(token: u32, first: u32, lane: u32) {
  let a = x4(token, first + quad_at(lane, 0u));
  let b = x4(token, first + quad_at(lane, 1u));
  let c = x4(token, first + quad_at(lane, 2u));
  let d = x4(token, first + quad_at(lane, 3u));
  let e = x4(token, first + quad_at(lane, 4u));
  let f = x4(token, first + quad_at(lane, 5u));
  let g = x4(token, first + quad_at(lane, 6u));
  let h = x4(token, first + quad_at(lane, 7u));
  set_unit(max(max(max(magnitude4(a), magnitude4(b)), max(magnitude4(c), magnitude4(d))),
               max(max(magnitude4(e), magnitude4(f)), max(magnitude4(g), magnitude4(h)))));
  x0 = digits16(a, b, c, d);
  x1 = digits16(e, f, g, h);
  x_sums = vec2f(sum4((a + b) + (c + d)), sum4((e + f) + (g + h)));
}
