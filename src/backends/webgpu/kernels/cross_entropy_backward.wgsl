// dx = (softmax(row) - onehot(label)) * d_loss per row of logits, from the statistics that cross_entropy_stats.wgsl has of the
// row's chunks. A label out of range gives 0.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
// @include "softmax_merge.wgsl"
alias T = f32;           // @type f32 | f16
alias V = f32;           // @type T | vec4<T>

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  labels_base: u32,
  d_loss_base: u32,
  stats_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       labels: array<i32>;
@group(0) @binding(2) var<storage, read>       d_loss: array<T>;
@group(0) @binding(3) var<storage, read>       stats: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read_write> dst: array<V>;
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  let stat = merged_stats(row, lane, thread);
  if (!row.live) { return; }
  let label = labels[p.labels_base + row.whole];
  let known = label >= 0 && u32(label) < p.cols * VECTOR;
  let gradient = f32(d_loss[p.d_loss_base + row.whole]);
  var own = -F32_MAX;
  if (known) { own = lane_of_load(F(src[p.src_base + row.whole * p.cols + u32(label) / VECTOR]), u32(label) % VECTOR); }
  let top = f_max(stat.x, own);
  let others = stat.y * exp(stat.x - top);
  let scale = 1.0 / (others + exp(own - top));
  for (var c = lane; c < row.count; c += LANES) {
    let unit = exp(F(src[p.src_base + row.first + c]) - top) * scale;
    let dx = select(unit, F(-others * scale), lanes_hit(row.begin + c, u32(label)) != F(0.0)) * gradient;
    dst[p.dst_base + row.first + c] = V(select(F(0.0), dx, known));
  }
}
