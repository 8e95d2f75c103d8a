// Where the elements of a lane lie, for dequant_gemv_one.wgsl: four lanes share a block of 32, each has four of its first
// half and four of its second, as the nibbles of a word.
const CHUNK: u32 = 256u;        // elements of a row that a team takes at a time
const QUADS: u32 = 2u;          // a lane's part of them, in fours
// The first element of the lane's block: it is there or the whole block is not.
fn lane_first(lane: u32) -> u32 { return (lane >> 2u) * 32u; }
fn quad_at(lane: u32, i: u32) -> u32 { return (lane >> 2u) * 32u + i * 16u + (lane & 3u) * 4u; }
