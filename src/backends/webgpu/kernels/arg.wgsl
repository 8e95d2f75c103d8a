// Index of the largest or smallest element along an axis.
// @include "rows.wgsl"
// @include "key.wgsl"
// @include "arg_row.wgsl"

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<E>;
@group(0) @binding(1) var<storage, read_write> dst: array<i32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  let first = p.src_base + row.first;
  var best = vec2<u32>(0u, 0xffffffffu);
  for (var c = lane; c < row.count; c += LANES) { best = better(best, vec2<u32>(key_of(src[first + c * p.inner]), c)); }
  best = best_of_row(best, thread);
  if (row.live && lane == 0u) { dst[p.dst_base + row.index] = bitcast<i32>(best.y); }
}
