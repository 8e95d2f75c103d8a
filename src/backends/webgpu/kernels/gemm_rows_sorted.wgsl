// As gemm_rows.wgsl, of rows that expert_sort.wgsl has put in order: a tile's name one expert. Those that name none give 0.
@group(0) @binding(3) var<storage, read>       order: array<u32>;
@group(0) @binding(4) var<storage, read>       tiles: array<u32>;
struct TileRows {
  first: u32,
  end: u32,
  w_byte: u32,
  known: bool,
}
var<workgroup> tile_count: u32;
fn is_there(tile: u32, thread: u32) -> bool {
  if (thread == 0u) { tile_count = tiles[p.tiles_base]; }
  return tile < workgroupUniformLoad(&tile_count);
}
fn rows_of(tile: u32) -> TileRows {
  let at = p.tiles_base + 1u + 3u * tile;
  let expert = tiles[at];
  let known = expert < p.experts;
  return TileRows(tiles[at + 1u], tiles[at + 2u], p.w_byte_base + select(0u, expert * p.n * p.row_bytes, known), known);
}
fn row_at(place: u32) -> u32 { return order[p.order_base + min(place, p.m - 1u)]; }
