// As lanes_of_32.wgsl: eight lanes share a block of 256, each has 16 elements of one group of 32 and 16 of the next, as the
// nibbles of 16 bytes. Minima are met by the sums of x in both, which all rows share.
// @include "x_in_registers.wgsl"
// @include "six_bit_pairs.wgsl"
var<private> x_sums: vec2f;
fn lane_first(lane: u32) -> u32 { return (lane >> 3u) * 256u; }
fn quad_at(lane: u32, i: u32) -> u32 {
  return (lane >> 3u) * 256u + ((lane >> 1u) & 3u) * 64u + (lane & 1u) * 16u + (i >> 2u) * 32u + (i & 3u) * 4u;
}
fn prepare() {
  x_sums = vec2f(dot(xq0 + xq1 + xq2 + xq3, vec4f(1.0)), dot(xq4 + xq5 + xq6 + xq7, vec4f(1.0)));
}
