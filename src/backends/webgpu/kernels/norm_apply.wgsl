// The second pass of a norm over long rows: y = (x - mean) * r * gamma + beta.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
// @include "norm_gamma.wgsl"
// @include "norm_merge.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>
alias G = f32;                   // of gamma: V, or one element where rows are groups of channels
override HAS_BETA: bool = true;
override KEPT: u32 = 4u;         // loads of a thread

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  eps: f32,
  groups: u32,                   // as norm.wgsl
  group_channels: u32,
  per_gamma: u32,
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  stats_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read>       stats: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dst: array<V>;
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_from_end(group, groups, thread);
  let lane = lane_of(thread);
  // All loads before the statistics are put together, which waits.
  var kept: array<F, KEPT>;
  var scales: array<GF, KEPT>;
  var shifts: array<GF, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      kept[k] = F(src[p.src_base + row.first + c * p.inner]);
      scales[k] = gamma_of(row, c);
      if (HAS_BETA) { shifts[k] = beta_of(row, c); }
    }
  }
  let m = merged_moments(row, lane, thread);
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      var out = (kept[k] - m.x - m.y) * m.z * scales[k];
      if (HAS_BETA) { out += shifts[k]; }
      dst[p.dst_base + row.first + c * p.inner] = V(out);
    }
  }
}
