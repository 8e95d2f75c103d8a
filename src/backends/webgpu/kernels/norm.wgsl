// y = (x - mean) / sqrt(variance + eps) * gamma + beta along rows that fit the registers of LANES threads: one read,
// one write.
// @include "norm_row.wgsl"
// @include "lanes1.wgsl"
// @include "norm_gamma.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>
alias G = f32;                   // of gamma: V, or one element where rows are groups of channels
override HAS_BETA: bool = true;
override EARLY: bool = false;    // gammas are loaded before the sums of a row are known, which takes registers

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  n: u32,                        // elements in a row
  eps: f32,
  groups: u32,                   // rows that follow each other with gammas of their own
  group_channels: u32,           // gammas of a row
  per_gamma: u32,                // elements that share one
  src_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       gamma: array<G>;
@group(0) @binding(2) var<storage, read>       beta: array<G>;
@group(0) @binding(3) var<storage, read_write> dst: array<V>;
@group(0) @binding(4) var<uniform>             p: Params;

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
  var scales: array<GF, KEPT>;
  var shifts: array<GF, KEPT>;
  if (EARLY) {
    for (var k = 0u; k < KEPT; k++) {
      let c = min(lane + k * LANES, p.cols - 1u);
      scales[k] = gamma_of(row, c);
      if (HAS_BETA) { shifts[k] = beta_of(row, c); }
    }
  }
  let m = row_moments(&kept, row, f32(p.n), thread);
  let r = inverse_root(m.squares, m.smaller, f32(p.n), p.eps);
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      if (!EARLY) {
        scales[k] = gamma_of(row, c);
        if (HAS_BETA) { shifts[k] = beta_of(row, c); }
      }
      var out = (kept[k] - m.mean - m.rest) * r * scales[k];
      if (HAS_BETA) { out += shifts[k]; }
      dst[p.dst_base + row.first + c * p.inner] = V(out);
    }
  }
}
