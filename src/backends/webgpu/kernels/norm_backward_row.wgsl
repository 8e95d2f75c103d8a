// norm_backward.wgsl for rows that fit the registers of LANES threads, statistics included: x and dy are read once.
// Also gives mean, what it leaves and 1 / sqrt(variance + eps) of each row, for the gradients of gamma and beta.
// @include "norm_row.wgsl"
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
  n: u32,                        // elements in a row
  eps: f32,
  groups: u32,                   // as norm.wgsl
  group_channels: u32,
  per_gamma: u32,
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dy_base: u32,
  moments_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read>       dy: array<V>;
@group(0) @binding(4) var<storage, read_write> moments: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dst: array<V>;
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var kept: array<F, KEPT>;
  var h: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      kept[k] = F(src[p.src_base + row.first + c]);
      h[k] = F(dy[p.dy_base + row.first + c]) * gamma_of(row, c);
    }
  }
  let n = f32(p.n);
  let m = row_moments(&kept, row, n, thread);
  let r = inverse_root(m.squares, m.smaller, n, p.eps);
  var part = vec3<f32>(0.0, 0.0, 0.0);
  for (var k = 0u; k < KEPT; k++) {
    kept[k] = (kept[k] - m.mean - m.rest) * r;
    if (lane + k * LANES < row.count) { part += vec3<f32>(lanes_sum(h[k]), lanes_sum(h[k] * kept[k]), 0.0); }
  }
  var sums = row_sum3(part, thread) / n;
  if (!CENTRED) { sums.x = 0.0; }
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { dst[p.dst_base + row.first + c] = V((h[k] - sums.x - kept[k] * sums.y) * r); }
  }
  if (row.live && lane == 0u) { moments[p.moments_base + row.index] = vec4<f32>(m.mean, m.rest, r, 0.0); }
}
