// Elements of the matrix of windows, four neighbours at a time: a window is one element and they lie in the order of the
// image, in planes made of fours. Takes the place of conv_gather.wgsl in conv_gemm.wgsl.
alias Cell = vec4<f32>;
const CELLS: u32 = 4u;

struct Column {
  base: u32,   // NOWHERE: no window
}

fn column_of(n: u32, g: u32) -> Column {
  if (n >= p.n_end) { return Column(NOWHERE); }
  let start = (n / p.windows * p.cin + g * p.cin_group) * p.in_plane;
  return Column((start + n % p.windows) / 4u);
}

fn cell_of(c: Column, only: vec4<u32>, taps_at: u32, k0: u32, row: u32) -> Cell {
  let k = k0 + row;
  var v = vec4<f32>();
  if (c.base != NOWHERE && (!CHECKED || k < p.cin_group)) {
    v = vec4<f32>(image[p.image_base + c.base + k * (p.in_plane / 4u)]);
  }
  return v;
}

fn put_cell(at: u32, v: Cell) { image_tile[at / 4u] = v; }
