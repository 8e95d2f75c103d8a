// Puts the parts of attention's keys together: each has its maximum, its sum and a result that is not divided by it.
// @include "scalar.wgsl"
alias T = f32;            // @type f32 | f16

struct Params {
  n: u32,                 // elements of y
  heads: u32,
  seq_q: u32,
  head_dim: u32,
  splits: u32,
  q_batch: u32,
  q_head: u32,
  q_seq: u32,
  neg_inf: u32,
  has_lse: u32,
  parts_base: u32,
  stats_base: u32,
  result_base: u32,
  lse_base: u32,
}
@group(0) @binding(0) var<storage, read> parts: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<T>;
@group(0) @binding(3) var<storage, read_write> lse: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

fn is_neg_inf(x: f32) -> bool { return bitcast<u32>(x) == 0xff800000u; }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let id = (group.x + group.y * groups.x) * 64u + lane;
  if (id >= p.n) { return; }
  let row = id / p.head_dim;
  let d = id % p.head_dim;
  var top = bitcast<f32>(p.neg_inf);
  var first = 2u * row * p.splits + p.stats_base;
  for (var i = 0u; i < p.splits; i++) {
    let x = stats[first + 2u * i];
    top = select(top, x, x > top);
  }
  let base = select(top, 0.0, is_neg_inf(top));
  var sum = 0.0;
  var acc = 0.0;
  for (var i = 0u; i < p.splits; i++) {
    let part = stats[first + 2u * i];
    let own = stats[first + 2u * i + 1u];
    if (is_neg_inf(part) && bitcast<u32>(own) == 0u) { continue; }
    let scale = select(f_exp(part - base), 1.0, is_neg_inf(part));  // the sum of a part without a maximum is NaN
    sum += scale * own;
    acc += scale * parts[p.parts_base + (row * p.splits + i) * p.head_dim + d];
  }
  let empty = bitcast<u32>(sum) == 0u;
  let i = row % p.seq_q;
  let h = row / p.seq_q % p.heads;
  let b = row / p.seq_q / p.heads;
  result[p.result_base + b * p.q_batch + h * p.q_head + i * p.q_seq + d] = T(select(acc / sum, 0.0, empty));
  if (p.has_lse != 0u && d == 0u) {
    lse[p.lse_base + row] = select(base + f_log(sum), bitcast<f32>(p.neg_inf), empty);
  }
}
