// Products of bytes less their zero points, summed in i32 (sums wrap), one matrix pair of the batch after the other; with
// REQUANTIZE as codes of the result's scale. A tile of 16 x 16 per workgroup.
// @include "requantize.wgsl"
alias TA = i32;                   // @type i32 | u32
alias TB = i32;                   // @type i32 | u32
override A_ZERO: u32 = 0u;        // zero points: 0 the one in Params, 1 one number, 2 one per row, 3 that of each matrix
override B_ZERO: u32 = 0u;        // the same per column
override REQUANTIZE: bool = false;

struct Params {
  m: u32,
  n: u32,
  k: u32,
  batch: u32,
  a_point: i32,
  b_point: i32,
  out_point: i32,
  mult: u32,          // bits of the f32
  a_base: u32,
  b_base: u32,
  a_zero_base: u32,
  b_zero_base: u32,
  matrices_base: u32,
  bias_base: u32,
  y_base: u32,
}
@group(0) @binding(0) var<storage, read>       a: array<TA>;
@group(0) @binding(1) var<storage, read>       b: array<TB>;
@group(0) @binding(2) var<storage, read>       a_zero: array<TA>;
@group(0) @binding(3) var<storage, read>       b_zero: array<TB>;
@group(0) @binding(4) var<storage, read>       matrices: array<u32>;  // matrix of a and of b, per matrix of the result
@group(0) @binding(5) var<storage, read>       bias: array<i32>;
@group(0) @binding(6) var<storage, read_write> y: array<i32>;
@group(0) @binding(7) var<uniform>             p: Params;

var<workgroup> a_tile: array<i32, 256>;
var<workgroup> b_tile: array<i32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let id = group.x + group.y * groups.x;
  let tiles_n = (p.n + 15u) / 16u;
  let tiles_m = (p.m + 15u) / 16u;
  let matrix = id / (tiles_n * tiles_m);
  if (matrix >= p.batch) { return; }
  let am = matrices[p.matrices_base + 2u * matrix];
  let bm = matrices[p.matrices_base + 2u * matrix + 1u];
  let tx = thread & 15u;
  let ty = thread >> 4u;
  let row = id / tiles_n % tiles_m * 16u + ty;
  let column = id % tiles_n * 16u + tx;
  var az = p.a_point;
  var bz = p.b_point;
  if (row < p.m) {
    if (A_ZERO == 1u) { az = i32(a_zero[p.a_zero_base]); }
    if (A_ZERO == 2u) { az = i32(a_zero[p.a_zero_base + row]); }
    if (A_ZERO == 3u) { az = i32(a_zero[p.a_zero_base + am * p.m + row]); }
  }
  if (column < p.n) {
    if (B_ZERO == 1u) { bz = i32(b_zero[p.b_zero_base]); }
    if (B_ZERO == 2u) { bz = i32(b_zero[p.b_zero_base + column]); }
    if (B_ZERO == 3u) { bz = i32(b_zero[p.b_zero_base + bm * p.n + column]); }
  }
  var sum = 0;
  for (var first = 0u; first < p.k; first += 16u) {
    a_tile[thread] = 0;
    b_tile[thread] = 0;
    if (row < p.m && first + tx < p.k) { a_tile[thread] = i32(a[p.a_base + (am * p.m + row) * p.k + first + tx]) - az; }
    if (column < p.n && first + ty < p.k) {
      b_tile[thread] = i32(b[p.b_base + (bm * p.k + first + ty) * p.n + column]) - bz;
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) { sum += a_tile[ty * 16u + i] * b_tile[i * 16u + tx]; }
    workgroupBarrier();
  }
  if (row >= p.m || column >= p.n) { return; }
  if (REQUANTIZE) { sum = requantize(sum, bias[p.bias_base + column], p.mult, p.out_point); }
  y[p.y_base + (matrix * p.m + row) * p.n + column] = sum;
}
