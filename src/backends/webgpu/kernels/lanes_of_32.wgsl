// Where the elements of a lane lie, for dequant_gemv_one.wgsl: it has a block of 32.
// @include "x_in_registers.wgsl"
// The first element of the lane's block: it is there or the whole block is not.
fn lane_first(lane: u32) -> u32 { return lane * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return lane * 32u + i * 4u; }
fn sum_of_x() -> f32 {
  return dot(((xq0 + xq1) + (xq2 + xq3)) + ((xq4 + xq5) + (xq6 + xq7)), vec4f(1.0));
}
