// A grouped product whose rows expert_sort.wgsl has put in order: a tile is rows of one expert. The result's rows go
// back to their places; rows that name no expert are zeros.
// @include "matmul_params.wgsl"
@group(0) @binding(7) var<storage, read>       order: array<u32>;
@group(0) @binding(8) var<storage, read>       tiles: array<u32>;
struct Matrices {
  lhs: u32,
  rhs: u32,
  result: u32,
  first: u32,
  rows: u32,
  cols: u32,
}
var<workgroup> tile_count: u32;
fn is_there(tile: u32, lane: u32) -> bool {
  if (lane == 0u) { tile_count = tiles[p.tiles_base]; }
  return tile < workgroupUniformLoad(&tile_count);
}
fn matrices_of(matrix: u32, tile: u32, tile_rows: u32) -> Matrices {
  let at = p.tiles_base + 1u + 3u * tile;
  let expert = tiles[at];
  let known = expert < p.experts;
  return Matrices(0u, select(0u, expert * p.k * p.n, known), 0u, tiles[at + 1u], tiles[at + 2u], select(0u, p.n, known));
}
fn row_of(row: u32) -> u32 { return order[p.order_base + min(row, p.m - 1u)]; }
