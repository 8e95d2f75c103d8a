// With h = dy * gamma and u = (x - mean) * r: the sums of h and of h * u over each row or chunk.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
// @include "norm_gamma.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>
alias G = f32;                   // of gamma: V, or one element where rows are groups of channels

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  groups: u32,                   // as norm.wgsl
  group_channels: u32,
  per_gamma: u32,
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dy_base: u32,
  moments_base: u32,
  sums_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read>       dy: array<V>;
@group(0) @binding(4) var<storage, read>       moments: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> sums: array<vec2<f32>>;
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var m = vec4<f32>(0.0);
  if (row.live) { m = moments[p.moments_base + row.whole]; }
  var sum = 0.0;
  var along = 0.0;
  for (var c = lane; c < row.count; c += LANES) {
    let at = row.first + c;
    let h = F(dy[p.dy_base + at]) * gamma_of(row, c);
    sum += lanes_sum(h);
    along += lanes_sum(h * ((F(src[p.src_base + at]) - m.x - m.y) * m.z));
  }
  sum = row_sum(sum, thread);
  along = row_sum(along, thread);
  if (row.live && lane == 0u) { sums[p.sums_base + row.index] = vec2<f32>(sum, along); }
}
