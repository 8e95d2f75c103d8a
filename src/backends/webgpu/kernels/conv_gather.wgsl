// Elements of the matrix of windows, one at a time, wherever the taps table says. Pasted into conv_gemm.wgsl.
alias Cell = f32;
const CELLS: u32 = 1u;

// Where a window starts; beyond the image if there is none.
struct Column {
  base: u32,
  z: i32,
  row: i32,
  col: i32,
}

fn column_of(n: u32, g: u32) -> Column {
  if (n >= p.n_end) { return Column(0u, -0x40000000, -0x40000000, -0x40000000); }
  let q = n % p.windows;
  let z = q / (p.q_h * p.q_w) * p.stride_d;
  let row = q / p.q_w % p.q_h * p.stride_h;
  let col = q % p.q_w * p.stride_w;
  let start = (n / p.windows * p.cin + g * p.cin_group) * p.in_plane;
  return Column(start + (z * p.in_h + row) * p.in_w + col, i32(z), i32(row), i32(col));
}

// A tap: its distance from the window's start in elements, then along the three axes. Of a tile with one tap it is given.
fn cell_of(c: Column, only: vec4<u32>, taps_at: u32, k0: u32, row: u32) -> Cell {
  var tap = only;
  if (BLOCK == 1u) { tap = taps[taps_at + k0 + row]; }
  var inside = c.col >= 0;
  if (CHECKED) {
    inside = u32(c.col + i32(tap.w)) < p.in_w && u32(c.row + i32(tap.z)) < p.in_h && u32(c.z + i32(tap.y)) < p.in_d;
  }
  var v = 0.0;
  if (inside) { v = f32(image[p.image_base + c.base + tap.x + select(0u, row * p.in_plane, BLOCK > 1u)]); }
  return v;
}

fn put_cell(at: u32, v: Cell) { image_tile[at / 4u][at % 4u] = v; }
