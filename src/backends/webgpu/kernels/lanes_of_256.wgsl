// As lanes_of_32.wgsl: eight lanes share a block of 256, each has 16 elements of one group of 32 and 16 of the next, as the
// nibbles of 16 bytes. Minima are met by the sums of x in both, which all rows share.
// @include "x_digits.wgsl"
// @include "six_bit_pairs.wgsl"
fn lane_first(lane: u32) -> u32 { return (lane >> 3u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 {
  return (lane >> 3u) * 256u + ((lane >> 1u) & 3u) * 64u + (lane & 1u) * 16u + (i >> 2u) * 32u + (i & 3u) * 4u;
}
// Of the codes of both groups; the scales of 6 bits are whole numbers, too.
fn block_by_x(head: vec4u, first: vec4u, last: vec4u, pair: u32) -> f32 {
  let d = unpack2x16float(head.x);
  let s = pairs_of(head.yzw, pair);
  let n = bitcast<i32>(s.x & 0xffu) * by_digits(first, x0) + bitcast<i32>(s.x >> 8u) * by_digits(last, x1);
  let minima = f32(s.y & 0xffu) * x_sums.x + f32(s.y >> 8u) * x_sums.y;
  return d.x * (x_unit * number(n)) - d.y * minima;
}
