// Mean, what it leaves and 1 / sqrt(variance + eps) of each row, of the statistics of its chunks: what the gradients of a norm read.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
// @include "norm_merge.wgsl"

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  count: u32,       // rows, chunks not counted
  eps: f32,
  stats_base: u32,
  moments_base: u32,
}
@group(0) @binding(0) var<storage, read>       stats: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> moments: array<vec4<f32>>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let index = (group.x + group.y * groups.x) * SLOTS + thread / LANES;
  var row: Row;
  row.live = index < p.count;
  row.chunk0 = index * p.chunks;
  let m = merged_moments(row, lane_of(thread), thread);
  if (row.live && lane_of(thread) == 0u) { moments[p.moments_base + index] = vec4<f32>(m, 0.0); }
}
