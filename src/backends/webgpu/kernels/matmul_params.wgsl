// What every matmul kernel is told. Matrices are row-major: lhs [m, k], rhs [k, n], the result [m, n].
struct Params {
  m: u32,
  n: u32,
  k: u32,
  batch: u32,             // matrices of the result
  tiles_m: u32,           // tiles of rows, and of columns, in one matrix
  tiles_n: u32,
  chunk: u32,             // how much of k a workgroup sums; less than k: split over workgroups
  part: u32,              // elements between the partial results of such a split
  d1: u32,                // batch axes 1, 2 and 3; axis 0 is what is left
  d2: u32,
  d3: u32,
  lhs_s0: u32,            // how far an operand's matrix moves per step of a batch axis; 0: it is shared
  lhs_s1: u32,
  lhs_s2: u32,
  lhs_s3: u32,
  rhs_s0: u32,
  rhs_s1: u32,
  rhs_s2: u32,
  rhs_s3: u32,
  experts: u32,           // of a grouped product
  start1: u32,            // of a result in parts: the first columns of parts 1, 2 and 3
  start2: u32,
  start3: u32,
  skip: u32,              // bit i: nobody reads part i
  lhs_base: u32,
  rhs_base: u32,
  bias_base: u32,
  index_base: u32,
  order_base: u32,
  tiles_base: u32,
  y_base: u32,
  y1_base: u32,
  y2_base: u32,
  y3_base: u32,
}

override FOLDED: bool = false;  // z has not enough places for tiles of columns: they lie along x, behind those of rows

struct Tile {
  rows: u32,      // number among the tiles of rows, those of all matrices
  columns: u32,   // number among the tiles of columns, those of all parts of k
}
fn tile_of(group: vec3u, groups: vec3u) -> Tile {
  let linear = group.x + group.y * groups.x;      // the grid wraps into y
  if (!FOLDED) { return Tile(linear, group.z); }
  let rows = p.tiles_m * p.batch;
  return Tile(linear % rows, linear / rows);
}
// Not so beyond the last one, where the grid wraps or an extent is cut.
fn is_in_grid(tile: Tile) -> bool {
  return tile.rows / p.tiles_m < p.batch && (!FOLDED || tile.columns < p.tiles_n);
}
