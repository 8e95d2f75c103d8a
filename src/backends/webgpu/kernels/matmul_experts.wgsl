// A grouped product, a row per batch index: its matrix is the one that the row's index names. An index that names none
// gives zeros.
// @include "matmul_params.wgsl"
@group(0) @binding(7) var<storage, read>       index: array<i32>;
struct Matrices {
  lhs: u32,
  rhs: u32,
  result: u32,
  first: u32,
  rows: u32,
  cols: u32,
}
fn is_there(tile: u32, lane: u32) -> bool { return true; }
fn matrices_of(matrix: u32, tile: u32, tile_rows: u32) -> Matrices {
  let expert = index[p.index_base + matrix];
  let known = expert >= 0 && u32(expert) < p.experts;
  return Matrices(matrix * p.k, select(0u, u32(expert) * p.k * p.n, known), matrix * p.n, 0u, 1u,
                  select(0u, p.n, known));
}
fn row_of(row: u32) -> u32 { return row; }
