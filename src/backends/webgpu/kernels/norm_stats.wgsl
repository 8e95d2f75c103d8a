// Mean, what it leaves, and roots of the sums of squared deviations (norm_root.wgsl) of each chunk of rows that no workgroup
// holds.
// @include "norm_row.wgsl"
// @include "lanes1.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  stats_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec4<f32>>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var kept: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { kept[k] = F(src[p.src_base + row.first + c * p.inner]); }
  }
  let m = row_moments(&kept, row, f32(row.count * VECTOR), thread);
  if (row.live && lane == 0u) {
    stats[p.stats_base + row.index] = vec4<f32>(m.mean, m.rest, sqrt(m.squares), sqrt(m.smaller));
  }
}
