// y [count, cols, rows] = x [count, rows, cols], from element `skip` on, with its last axes swapped, by tiles of 16 by 16.
alias T = f32;             // @type f32 | f16

struct Params {
  tiles: u32,              // workgroups
  rows: u32,
  cols: u32,
  skip: u32,
  x_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform> p: Params;

var<workgroup> cells: array<T, 16 * 17>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = group.x + group.y * groups.x;
  if (id >= p.tiles) { return; }
  let across = (p.cols + 15u) / 16u;
  let down = (p.rows + 15u) / 16u;
  let col = id % across * 16u;
  let row = id / across % down * 16u;
  let first = id / across / down * p.rows * p.cols;
  let i = lane / 16u;
  let j = lane % 16u;
  if (row + i < p.rows && col + j < p.cols) { cells[i * 17u + j] = x[p.x_base + p.skip + first + (row + i) * p.cols + col + j]; }
  workgroupBarrier();
  if (col + i < p.cols && row + j < p.rows) { y[p.y_base + first + (col + i) * p.rows + row + j] = cells[j * 17u + i]; }
}
