// Which rows of x a tile of dequant_gemm.wgsl has: 64 that follow each other, and one W for all of them.
struct TileRows {
  first: u32,    // places of its rows
  end: u32,      // places from here on are not its own
  w_byte: u32,   // where its W starts
  known: bool,   // else the results are 0
}
fn is_there(tile: u32, thread: u32) -> bool { return true; }
fn rows_of(tile: u32) -> TileRows { return TileRows(tile * 64u, p.m, p.w_byte_base, true); }
fn row_at(place: u32) -> u32 { return place; }
