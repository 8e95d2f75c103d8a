// Puts the parts of attention's keys together: each has its maximum, its sum and a result that is not divided by it. A
// workgroup per query: first what the parts count, then their sum, of which a thread has every TEAMS-th part.
// @include "scalar.wgsl"
// @include "reduce.wgsl"
alias T = f32;            // @type f32 | f16
alias V = f32;            // what parts are read by: f32, or vec4<f32>
override WIDTH: u32 = 1u;  // of V
const WG = 128u;
const MOST = 512u;        // parts
const AHEAD = 4u;         // that a thread asks for at a time

struct Params {
  queries: u32,
  heads: u32,
  seq_q: u32,
  head_dim: u32,
  splits: u32,
  y_batch: u32,
  y_head: u32,
  y_seq: u32,
  neg_inf: u32,
  has_lse: u32,
  parts_base: u32,
  stats_base: u32,
  result_base: u32,
  lse_base: u32,
}
@group(0) @binding(0) var<storage, read> parts: array<V>;
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> result: array<T>;
@group(0) @binding(3) var<storage, read_write> lse: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

var<workgroup> factors: array<f32, MOST>;  // negative: the part has no keys
var<workgroup> cells: array<vec4f, WG>;

fn is_neg_inf(x: f32) -> bool { return bitcast<u32>(x) == 0xff800000u; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= p.queries) { return; }
  let first = p.stats_base + row * p.splits;
  var top = bitcast<f32>(p.neg_inf);
  for (var i = lane; i < p.splits; i += WG) {
    let x = stats[first + i].x;
    top = select(top, x, x > top);
  }
  top = wg_max(top, lane);
  let base = select(top, 0.0, is_neg_inf(top));
  var sum = 0.0;
  for (var i = lane; i < p.splits; i += WG) {
    let stat = stats[first + i];
    let empty = is_neg_inf(stat.x) && bitcast<u32>(stat.y) == 0u;
    // The sum of a part without a maximum is NaN.
    let factor = select(select(f_exp(stat.x - base), 1.0, is_neg_inf(stat.x)), -1.0, empty);
    factors[i] = factor;
    if (!empty) { sum += factor * stat.y; }
  }
  sum = wg_sum(sum, lane);  // and a barrier
  let empty = bitcast<u32>(sum) == 0u;
  let i = row % p.seq_q;
  let h = row / p.seq_q % p.heads;
  let b = row / p.seq_q / p.heads;
  if (p.has_lse != 0u && lane == 0u) {
    lse[p.lse_base + row] = select(base + f_log(sum), bitcast<f32>(p.neg_inf), empty);
  }

  let columns = p.head_dim / WIDTH;
  let across = min(columns, WG);
  let teams = WG / across;
  let team = lane / across;
  for (var c0 = 0u; c0 < columns; c0 += across) {
    let column = c0 + lane % across;
    var acc = vec4f(0.0);
    if (team < teams && column < columns) {
      for (var n0 = team; n0 < p.splits; n0 += AHEAD * teams) {
        var x: array<vec4f, AHEAD>;
        for (var k = 0u; k < AHEAD; k++) {
          x[k] = vec4f(parts[p.parts_base + (row * p.splits + min(n0 + k * teams, p.splits - 1u)) * columns + column]);
        }
        for (var k = 0u; k < AHEAD; k++) {
          let n = n0 + k * teams;
          if (n < p.splits && factors[n] >= 0.0) { acc += factors[n] * x[k]; }
        }
      }
    }
    workgroupBarrier();
    cells[lane] = acc;
    workgroupBarrier();
    if (team == 0u && column < columns) {
      for (var t = 1u; t < teams; t++) { acc += cells[t * across + lane]; }
      acc = select(acc / sum, vec4f(0.0), empty);
      let at = p.result_base + b * p.y_batch + h * p.y_head + i * p.y_seq + column * WIDTH;
      for (var k = 0u; k < WIDTH; k++) { result[at + k] = T(acc[k]); }
    }
  }
}
