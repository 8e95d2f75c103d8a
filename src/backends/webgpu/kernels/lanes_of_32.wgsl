// Where the elements of a lane lie, for dequant_gemv_one.wgsl: it has a block of 32.
// @include "x_digits.wgsl"
// The first element of the lane's block: it is there or the whole block is not.
fn lane_first(lane: u32) -> u32 { return lane * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return lane * 32u + i * 4u; }
