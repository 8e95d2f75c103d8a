// The second pass of a softmax over long rows: y = exp(x - max) / sum.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
// @include "softmax_merge.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
override KEPT: u32 = 4u; // loads of a thread

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  stats_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> dst: array<V>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_from_end(group, groups, thread);
  let lane = lane_of(thread);
  var kept: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { kept[k] = F(src[p.src_base + row.first + c * p.inner]); }
  }
  let stat = merged_stats(row, lane, thread);
  let scale = 1.0 / stat.y;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { dst[p.dst_base + row.first + c * p.inner] = V(exp(kept[k] - stat.x) * scale); }
  }
}
