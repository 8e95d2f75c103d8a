// y = epilogue(lhs · rhs) for few rows: a lane owns four adjacent columns of ROWS rows, so that each vector of rhs is
// read once; LX lanes lie side by side and the others of the workgroup take turns along k. Their sums meet in workgroup
// memory. Rows and batch are the grid's x (and y, where it wraps); z are tiles of columns and parts of k.
// @include "matmul_params.wgsl"
// @include "matmul_lhs.wgsl"
// @include "matmul_rhs.wgsl"
// @include "matmul_epilogue.wgsl"
// @include "matmul_store.wgsl"
// @include "matmul_batch.wgsl"
override ROWS: u32 = 1u;
override LX: u32 = 8u;               // a power of two below 256
override LY: u32 = 256u / LX;
override HELD: u32 = min(ROWS, 4u);  // rows that are summed up at a time: 16 KiB hold four

@group(0) @binding(10) var<uniform>            p: Params;
var<workgroup> cells: array<vec4f, 256u * HELD>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tile = tile_of(group, groups);
  if (!is_in_grid(tile)) { return; }
  let at = matrices_of(tile.rows / p.tiles_m, tile.rows % p.tiles_m, ROWS);
  let lx = lane % LX;
  let ly = lane / LX;
  let c = (tile.columns % p.tiles_n * LX + lx) * 4u;
  let part = tile.columns / p.tiles_n;
  let k_first = part * p.chunk;
  let k_end = min(p.k, k_first + p.chunk);

  var sums: array<vec4f, ROWS>;
  // Eight loads are under way at once.
  for (var k0 = k_first + ly * 4u; k0 < k_end; k0 += LY * 8u) {
    var v: array<vec4f, 8>;
    for (var i = 0u; i < 8u; i++) {
      let kk = k0 + i % 4u + i / 4u * (LY * 4u);
      v[i] = rhs4(at.rhs + kk * p.n, c, select(0u, at.cols, kk < k_end));
    }
    for (var r = 0u; r < ROWS; r++) {
      let row = at.first + r;
      let end = select(0u, k_end, row < at.rows);
      let x0 = lhs4(at.lhs + row * p.k, k0, end);
      let x1 = lhs4(at.lhs + row * p.k, k0 + LY * 4u, end);
      var s = sums[r];
      s = fma(vec4f(x0.x), v[0], s);
      s = fma(vec4f(x0.y), v[1], s);
      s = fma(vec4f(x0.z), v[2], s);
      s = fma(vec4f(x0.w), v[3], s);
      s = fma(vec4f(x1.x), v[4], s);
      s = fma(vec4f(x1.y), v[5], s);
      s = fma(vec4f(x1.z), v[6], s);
      s = fma(vec4f(x1.w), v[7], s);
      sums[r] = s;
    }
  }
  for (var r0 = 0u; r0 < ROWS; r0 += HELD) {
    workgroupBarrier();
    for (var r = 0u; r < HELD; r++) { cells[r * 256u + lane] = sums[r0 + r]; }
    for (var half = LY / 2u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      if (ly < half) {
        for (var r = 0u; r < HELD; r++) { cells[r * 256u + lane] += cells[r * 256u + lane + half * LX]; }
      }
    }
    workgroupBarrier();
    let row = at.first + r0 + ly;
    if (ly < HELD && row < at.rows) {
      store4(at.result + part * p.part, row, c, epilogue(cells[ly * 256u + lx], c));
    }
  }
}
