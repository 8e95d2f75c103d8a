// What attention's gradient needs per query: lse and the sum of dy * y; and per batch the keys in use.
// @include "attention_params.wgsl"
// @include "attention_lengths.wgsl"
alias T = f32;             // of dy
alias Y = f32;             // of y
const LANES = 16u;         // of a query
const WG = 128u;

@group(0) @binding(0) var<storage, read> dy: array<T>;
@group(0) @binding(1) var<storage, read> result: array<Y>;
@group(0) @binding(2) var<storage, read> lse: array<f32>;
@group(0) @binding(3) var<storage, read> lengths: array<i32>;
@group(0) @binding(4) var<storage, read_write> stats: array<vec2<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

var<workgroup> cells: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let queries = p.batch * p.heads * p.seq_q;
  let id = (group.x + group.y * groups.x) * (WG / LANES) + lane / LANES;  // queries, then batches
  let own = lane % LANES;
  var sum = 0.0;
  if (id < queries) {
    let i = id % p.seq_q;
    let h = id / p.seq_q % p.heads;
    let b = id / p.seq_q / p.heads;
    let at = b * p.q_batch + h * p.q_head + i * p.q_seq;
    for (var d = own; d < p.head_dim; d += LANES) {
      sum += f32(dy[p.dy_base + at + d]) * f32(result[p.result_base + at + d]);
    }
  }
  cells[lane] = sum;
  workgroupBarrier();
  if (own == 0u && id < queries) {
    for (var i = 1u; i < LANES; i++) { sum += cells[lane + i]; }
    stats[p.stats_base + id] = vec2u(bitcast<u32>(lse[p.lse_base + id]), bitcast<u32>(sum));
  }
  if (own == 0u && id >= queries && id < queries + p.batch) {
    stats[p.stats_base + id] = vec2u(bitcast<u32>(keys_in_use(id - queries)), 0u);
  }
}
