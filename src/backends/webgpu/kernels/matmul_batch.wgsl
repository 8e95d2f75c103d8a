// Where the matrices of a batch index start, in elements, and which rows are there. A shared matrix has stride 0.
// @include "matmul_params.wgsl"
struct Matrices {
  lhs: u32,
  rhs: u32,
  result: u32,
  first: u32,   // row of this tile
  rows: u32,    // rows from here on are not there
  cols: u32,    // of rhs; 0: it counts as zeros
}
fn is_there(tile: u32, lane: u32) -> bool { return true; }
fn matrices_of(matrix: u32, tile: u32, tile_rows: u32) -> Matrices {
  let i3 = matrix % p.d3;
  let q2 = matrix / p.d3;
  let i2 = q2 % p.d2;
  let q1 = q2 / p.d2;
  let i1 = q1 % p.d1;
  let i0 = q1 / p.d1;
  return Matrices(i0 * p.lhs_s0 + i1 * p.lhs_s1 + i2 * p.lhs_s2 + i3 * p.lhs_s3,
                  i0 * p.rhs_s0 + i1 * p.rhs_s1 + i2 * p.rhs_s2 + i3 * p.rhs_s3,
                  matrix * p.m * p.n, tile * tile_rows, p.m, p.n);
}
fn row_of(row: u32) -> u32 { return row; }
