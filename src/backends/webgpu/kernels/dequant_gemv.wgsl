// y = x · Wᵀ for at most M rows of x and a packed W [N, K] that is decoded on the fly. A workgroup is four teams of 32
// lanes, a team has ROWS rows of W, a lane eight elements of every 256. With experts (expert_of) a workgroup has one row
// of x, whose expert says where its W starts.
// @include "x_quads.wgsl"
// @include "decode_q4_0.wgsl"
// @include "no_experts.wgsl"
override M: u32 = 1u;
override ROWS: u32 = 2u;

struct Params {
  m: u32,             // rows of x
  n: u32,             // rows of W
  k: u32,
  row_bytes: u32,     // of a row of W
  experts: u32,       // 0: x has one W
  x_base: u32,
  w_byte_base: u32,
  y_base: u32,
  choice_base: u32,
}
@group(0) @binding(1) var<storage, read>       w: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform>             p: Params;

const TEAMS: u32 = 4u;
const OUTS: u32 = TEAMS * ROWS * M;
var<workgroup> cells: array<f32, OUTS * 32u>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let id = group.x + group.y * groups.x;
  let tiles = (p.n + TEAMS * ROWS - 1u) / (TEAMS * ROWS);
  let token = id / tiles;                       // 0 without experts
  let first = (id % tiles) * TEAMS * ROWS;      // row of W
  let lane = thread & 31u;
  let team = thread >> 5u;
  var acc: array<f32, ROWS * M>;
  let expert = expert_of(token);
  if (token < p.m && expert != NO_EXPERT) {
    let slab = p.w_byte_base + expert * p.n * p.row_bytes;
    for (var k = lane * 8u; k < p.k; k += 256u) {
      var xa: array<vec4f, M>;
      var xb: array<vec4f, M>;
      for (var i = 0u; i < M; i++) {
        let row = min(token + i, p.m - 1u);
        xa[i] = x4(row, k);
        xb[i] = x4(row, k + 4u);
      }
      for (var r = 0u; r < ROWS; r++) {
        let row = min(first + team * ROWS + r, p.n - 1u);
        let v = decode8(slab + row * p.row_bytes + (k / BLOCK) * BYTES, k % BLOCK);
        for (var i = 0u; i < M; i++) { acc[r * M + i] += dot(v.a, xa[i]) + dot(v.b, xb[i]); }
      }
    }
  }
  for (var o = 0u; o < ROWS * M; o++) { cells[(team * ROWS * M + o) * 32u + lane] = acc[o]; }
  workgroupBarrier();
  for (var o = thread; o < OUTS; o += 128u) {
    var sum = 0.0;
    for (var i = 0u; i < 32u; i++) { sum += cells[o * 32u + ((i + o) & 31u)]; }  // turned: other banks for each thread
    let row = first + o / M;
    let i = token + o % M;
    if (row < p.n && i < p.m) { y[p.y_base + i * p.n + row] = sum; }
  }
}
