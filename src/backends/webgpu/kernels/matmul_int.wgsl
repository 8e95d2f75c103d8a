// y = lhs · rhs of integers, which wrap. A thread per element, operands staged in tiles of 16 x 16. Tiles of rows are
// the grid's x (and y, where it wraps), batch and all; z are tiles of columns.
// @include "matmul_params.wgsl"
// @include "matmul_batch.wgsl"
alias T = i32;               // @type i32 | u32
override SHIFT: u32 = 0u;    // bits of a word that a narrow integer does not have

@group(0) @binding(0) var<storage, read>       lhs: array<T>;
@group(0) @binding(1) var<storage, read>       rhs: array<T>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(10) var<uniform>            p: Params;
var<workgroup> tile_a: array<T, 256>;
var<workgroup> tile_b: array<T, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tile = tile_of(group, groups);
  if (!is_in_grid(tile)) { return; }
  let at = matrices_of(tile.rows / p.tiles_m, tile.rows % p.tiles_m, 16u);
  let tx = lane % 16u;
  let ty = lane / 16u;
  let row = at.first + ty;
  let c = tile.columns * 16u + tx;
  var sum = T(0);
  for (var k0 = 0u; k0 < p.k; k0 += 16u) {
    tile_a[lane] = T(0);
    tile_b[lane] = T(0);
    if (row < at.rows && k0 + tx < p.k) { tile_a[lane] = lhs[p.lhs_base + at.lhs + row * p.k + k0 + tx]; }
    if (k0 + ty < p.k && c < at.cols) { tile_b[lane] = rhs[p.rhs_base + at.rhs + (k0 + ty) * p.n + c]; }
    workgroupBarrier();
    for (var kk = 0u; kk < 16u; kk++) { sum += tile_a[ty * 16u + kk] * tile_b[kk * 16u + tx]; }
    workgroupBarrier();
  }
  if (row < at.rows && c < p.n) { y[p.y_base + at.result + row * p.n + c] = (sum << SHIFT) >> SHIFT; }
}
