// softmax_stats.wgsl without each row's label: of a prediction that is nearly sure, what the other classes have is the loss.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
override KEPT: u32 = 4u; // loads that a thread keeps

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  labels_base: u32,
  stats_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       labels: array<i32>;
@group(0) @binding(2) var<storage, read_write> stats: array<vec2<f32>>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var label = 0u;
  if (row.live) { label = u32(labels[p.labels_base + row.whole]); }
  var kept: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    kept[k] = F(-F32_MAX);
    if (c < row.count) {
      kept[k] = select(F(src[p.src_base + row.first + c]), F(-F32_MAX), lanes_hit(row.begin + c, label) != F(0.0));
    }
  }
  var top = -F32_MAX;
  for (var k = 0u; k < KEPT; k++) { top = max(top, lanes_max(kept[k])); }
  top = row_max(top, thread);
  var sum = 0.0;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { sum += lanes_sum(exp(kept[k] - top) * (F(1.0) - lanes_hit(row.begin + c, label))); }
  }
  sum = row_sum(sum, thread);
  if (row.live && lane == 0u) { stats[p.stats_base + row.index] = vec2<f32>(top, sum); }
}
