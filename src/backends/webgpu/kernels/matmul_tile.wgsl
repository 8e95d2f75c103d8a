// y = epilogue(lhs · rhs) by tiles of TM x TN. TK of k at a time is staged in workgroup memory, lhs transposed, so that
// inner reads are vectors; a thread owns RM x RN results, in blocks of four by four that lie TM / RM and TN / RN blocks
// apart. The next tile is loaded while the current one is multiplied. Tiles of rows are the grid's x (and y, where it
// wraps), batch and all; z are tiles of columns and parts of k.
// @include "matmul_params.wgsl"
// @include "matmul_lhs.wgsl"
// @include "matmul_rhs.wgsl"
// @include "matmul_epilogue.wgsl"
// @include "matmul_store.wgsl"
// @include "matmul_batch.wgsl"
override TM: u32 = 64u;       // TM / RM: a multiple of 4; TN / RN: of 8
override TN: u32 = 64u;
override TK: u32 = 16u;
override RM: u32 = 4u;        // 4 or 8, as RN
override RN: u32 = 4u;
override BUFFERS: u32 = 2u;   // 2: the next tile is written beside the one that is read
override TX: u32 = TN / RN;   // threads across
override TY: u32 = TM / RM;
override WG: u32 = TX * TY;
override BLOCKS_A: u32 = TM * TK / 16u;   // four by four elements of lhs
override BLOCKS_B: u32 = TN * TK / 16u;   // four vectors of rhs
override LOADS: u32 = (BLOCKS_A + BLOCKS_B + WG - 1u) / WG;
override STAGED: u32 = 4u * LOADS;
override SUMS: u32 = RM * RN / 4u;
override VA: u32 = RM / 4u;
override VB: u32 = RN / 4u;

@group(0) @binding(10) var<uniform>            p: Params;
var<workgroup> tile_a: array<vec4f, BUFFERS * TK * TM / 4u>;
var<workgroup> tile_b: array<vec4f, BUFFERS * TK * TN / 4u>;

// Where column block `mb` of a row of tile_a lies: moved about, so that the transposed stores of a subgroup hit
// different banks.
fn place_a(buffer: u32, kk: u32, mb: u32) -> u32 {
  return (buffer * TK + kk) * (TM / 4u) + (mb ^ ((kk / 4u * 2u) % (TM / 4u)));
}

fn load_block(unit: u32, at: Matrices, col: u32, k0: u32, k_end: u32) -> mat4x4f {
  if (unit < BLOCKS_A) {
    let kk = k0 + unit % (TK / 4u) * 4u;
    let row = at.first + unit / (TK / 4u) * 4u;
    let m0 = lhs4(at.lhs + row_of(row) * p.k, kk, select(0u, k_end, row < at.rows));
    let m1 = lhs4(at.lhs + row_of(row + 1u) * p.k, kk, select(0u, k_end, row + 1u < at.rows));
    let m2 = lhs4(at.lhs + row_of(row + 2u) * p.k, kk, select(0u, k_end, row + 2u < at.rows));
    let m3 = lhs4(at.lhs + row_of(row + 3u) * p.k, kk, select(0u, k_end, row + 3u < at.rows));
    return transpose(mat4x4f(m0, m1, m2, m3));
  }
  let v = unit - BLOCKS_A;
  let c = col + v % (TN / 4u) * 4u;
  let kk = k0 + v / (TN / 4u);
  const step = BLOCKS_B / (TN / 4u);
  let n0 = rhs4(at.rhs + kk * p.n, c, select(0u, at.cols, kk < k_end));
  let n1 = rhs4(at.rhs + (kk + step) * p.n, c, select(0u, at.cols, kk + step < k_end));
  let n2 = rhs4(at.rhs + (kk + 2u * step) * p.n, c, select(0u, at.cols, kk + 2u * step < k_end));
  let n3 = rhs4(at.rhs + (kk + 3u * step) * p.n, c, select(0u, at.cols, kk + 3u * step < k_end));
  return mat4x4f(n0, n1, n2, n3);
}

fn put_block(unit: u32, buffer: u32, v0: vec4f, v1: vec4f, v2: vec4f, v3: vec4f) {
  if (unit < BLOCKS_A) {
    let kk = unit % (TK / 4u) * 4u;
    let mb = unit / (TK / 4u);
    tile_a[place_a(buffer, kk, mb)] = v0;
    tile_a[place_a(buffer, kk + 1u, mb)] = v1;
    tile_a[place_a(buffer, kk + 2u, mb)] = v2;
    tile_a[place_a(buffer, kk + 3u, mb)] = v3;
  } else {
    let at = buffer * (TK * TN / 4u) + unit - BLOCKS_A;
    tile_b[at] = v0;
    tile_b[at + BLOCKS_B] = v1;
    tile_b[at + 2u * BLOCKS_B] = v2;
    tile_b[at + 3u * BLOCKS_B] = v3;
  }
}

// Where a thread's results go: its first row, the rows there are, the matrix, its first column.
struct Place {
  row: u32,
  rows: u32,
  result: u32,
  col: u32,
}
fn put_row(place: Place, i: u32, s0: vec4f, s1: vec4f) {
  let row = place.row + i / 4u * TY * 4u + i % 4u;
  if (row >= place.rows) { return; }
  store4(place.result, row_of(row), place.col, epilogue(s0, place.col));
  if (VB == 2u) { store4(place.result, row_of(row), place.col + TX * 4u, epilogue(s1, place.col + TX * 4u)); }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let linear = group.x + group.y * groups.x;       // the grid wraps into y
  let matrix = linear / p.tiles_m;
  if (matrix >= p.batch) { return; }
  if (!is_there(linear % p.tiles_m, lane)) { return; }
  let at = matrices_of(matrix, linear % p.tiles_m, TM);
  let col = group.z % p.tiles_n * TN;
  let part = group.z / p.tiles_n;
  let k_first = part * p.chunk;
  let k_end = min(p.k, k_first + p.chunk);
  // 32 threads are 8 across and 4 down: they read few different vectors.
  let tx = lane % 8u + lane / 32u % (TX / 8u) * 8u;
  let ty = lane / 8u % 4u + lane / 32u / (TX / 8u) * 4u;

  var sums: array<vec4f, SUMS>;
  var staged: array<vec4f, STAGED>;
  for (var l = 0u; l < LOADS; l++) {
    if (lane + l * WG < BLOCKS_A + BLOCKS_B) {
      let block = load_block(lane + l * WG, at, col, k_first, k_end);
      put_block(lane + l * WG, 0u, block[0], block[1], block[2], block[3]);
    }
  }
  workgroupBarrier();
  var buffer = 0u;
  for (var k0 = k_first; k0 < k_end; k0 += TK) {
    if (k0 + TK < k_end) {
      for (var l = 0u; l < LOADS; l++) {
        if (lane + l * WG < BLOCKS_A + BLOCKS_B) {
          let block = load_block(lane + l * WG, at, col, k0 + TK, k_end);
          staged[4u * l] = block[0];
          staged[4u * l + 1u] = block[1];
          staged[4u * l + 2u] = block[2];
          staged[4u * l + 3u] = block[3];
        }
      }
    }
    for (var kk = 0u; kk < TK; kk++) {
      var va: array<vec4f, VA>;
      var vb: array<vec4f, VB>;
      for (var i = 0u; i < VA; i++) { va[i] = tile_a[place_a(buffer, kk, ty + i * TY)]; }
      for (var j = 0u; j < VB; j++) { vb[j] = tile_b[(buffer * TK + kk) * (TN / 4u) + tx + j * TX]; }
      for (var i = 0u; i < RM; i++) {
        for (var j = 0u; j < VB; j++) { sums[i * VB + j] = fma(vec4f(va[i / 4u][i % 4u]), vb[j], sums[i * VB + j]); }
      }
    }
    if (BUFFERS == 1u) { workgroupBarrier(); }
    if (k0 + TK < k_end) {
      let next = (buffer + 1u) % BUFFERS;
      for (var l = 0u; l < LOADS; l++) {
        if (lane + l * WG < BLOCKS_A + BLOCKS_B) {
          put_block(lane + l * WG, next, staged[4u * l], staged[4u * l + 1u], staged[4u * l + 2u], staged[4u * l + 3u]);
        }
      }
    }
    workgroupBarrier();
    buffer = (buffer + 1u) % BUFFERS;
  }
  // Written out: a loop around an epilogue is not unrolled, and then `sums` would not stay in registers.
  let place = Place(at.first + ty * 4u, at.rows, at.result + part * p.part, col + tx * 4u);
  put_row(place, 0u, sums[0], sums[VB - 1u]);
  put_row(place, 1u, sums[VB], sums[2u * VB - 1u]);
  put_row(place, 2u, sums[2u * VB], sums[3u * VB - 1u]);
  put_row(place, 3u, sums[3u * VB], sums[4u * VB - 1u]);
  if (RM == 8u) {
    put_row(place, 4u, sums[min(4u * VB, SUMS - 1u)], sums[min(5u * VB - 1u, SUMS - 1u)]);
    put_row(place, 5u, sums[min(5u * VB, SUMS - 1u)], sums[min(6u * VB - 1u, SUMS - 1u)]);
    put_row(place, 6u, sums[min(6u * VB, SUMS - 1u)], sums[min(7u * VB - 1u, SUMS - 1u)]);
    put_row(place, 7u, sums[min(7u * VB, SUMS - 1u)], sums[min(8u * VB - 1u, SUMS - 1u)]);
  }
}
