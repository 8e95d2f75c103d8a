// y = x · W for many rows of x: a tile of 64 x 64 of y per workgroup, W decoded into workgroup memory 32 steps of K at a
// time, a block of 4 x 4 of y per thread. Rows of a grouped product are sorted by expert (gemm_rows_sorted.wgsl).
// @include "x_quads.wgsl"
// @include "tile_rows.wgsl"
// @include "gemm_rows.wgsl"

struct Params {
  m: u32,
  n: u32,
  k: u32,
  row_bytes: u32,     // of a row of a W [N, K]
  block: u32,         // rows of a W [K, N] that share a scale
  scale_block: u32,   // distance of the scales of two blocks
  scale_column: u32,  // and of two columns: 0 or 1
  experts: u32,       // of a grouped product
  x_base: u32,
  w_byte_base: u32,
  y_base: u32,
  scale_base: u32,
  scale_byte_base: u32,
  zero_base: u32,
  order_base: u32,
  tiles_base: u32,
}
@group(0) @binding(1) var<storage, read>       w: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform>             p: Params;

const PART: u32 = 512u;
var<workgroup> x_tile: array<vec4f, 512>;  // [32 of K][64 of M]
var<workgroup> w_tile: array<vec4f, 512>;  // [32 of K][64 of N]

fn put(rows: TileRows, place: u32, column: u32, v: vec4f) {
  if (place >= rows.end) { return; }
  let at = p.y_base + row_at(place) * p.n + column;
  for (var c = 0u; c < 4u; c++) {
    if (column + c < p.n) { y[at + c] = select(0.0, v[c], rows.known); }
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let id = group.x + group.y * groups.x;
  let tiles = (p.n + 63u) / 64u;
  if (!is_there(id / tiles, thread)) { return; }
  let rows = rows_of(id / tiles);
  let first_column = (id % tiles) * 64u;
  let tx = thread & 15u;
  let ty = thread >> 4u;
  var acc0 = vec4f();
  var acc1 = vec4f();
  var acc2 = vec4f();
  var acc3 = vec4f();
  let row = thread >> 2u;
  let x_row = select(p.m, row_at(rows.first + row), rows.first + row < rows.end);
  let run = (thread & 3u) * 8u;
  // Parts of long sums: what is added to a large number loses digits.
  var whole0 = vec4f();
  var whole1 = vec4f();
  var whole2 = vec4f();
  var whole3 = vec4f();
  for (var k = 0u; k < p.k; k += 32u) {
    let a = x4_or_zero(x_row, k + run);
    let b = x4_or_zero(x_row, k + run + 4u);
    for (var i = 0u; i < 4u; i++) {
      x_tile[(run + i) * 16u + (row >> 2u)][row & 3u] = a[i];
      x_tile[(run + 4u + i) * 16u + (row >> 2u)][row & 3u] = b[i];
    }
    fill_w_tile(thread, first_column, k, rows.w_byte);
    workgroupBarrier();
    for (var i = 0u; i < 32u; i++) {
      let xv = x_tile[i * 16u + ty];
      let wv = w_tile[i * 16u + tx];
      acc0 += xv.x * wv;
      acc1 += xv.y * wv;
      acc2 += xv.z * wv;
      acc3 += xv.w * wv;
    }
    if (k % PART == PART - 32u) {
      whole0 += acc0;
      whole1 += acc1;
      whole2 += acc2;
      whole3 += acc3;
      acc0 = vec4f();
      acc1 = vec4f();
      acc2 = vec4f();
      acc3 = vec4f();
    }
    workgroupBarrier();
  }
  acc0 += whole0;
  acc1 += whole1;
  acc2 += whole2;
  acc3 += whole3;
  let column = first_column + tx * 4u;
  let top = rows.first + ty * 4u;
  put(rows, top, column, acc0);
  put(rows, top + 1u, column, acc1);
  put(rows, top + 2u, column, acc2);
  put(rows, top + 3u, column, acc3);
}
