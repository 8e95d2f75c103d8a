// y = norm(x + residual [+ bias]) along the last axis, of rows that fit the registers of LANES threads.
// @include "norm_row.wgsl"
// @include "lanes1.wgsl"
// @include "norm_gamma.wgsl"
alias V = f32;                   // @type f32 | f16 | vec4<f32> | vec4<f16>
override HAS_BIAS: bool = false;
override HAS_BETA: bool = true;

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  n: u32,                        // elements in a row
  eps: f32,
  src_base: u32,
  residual_base: u32,
  bias_base: u32,
  gamma_base: u32,
  beta_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read>       residual: array<V>;
@group(0) @binding(2) var<storage, read>       bias: array<V>;
@group(0) @binding(3) var<storage, read>       gamma: array<V>;
@group(0) @binding(4) var<storage, read>       beta: array<V>;
@group(0) @binding(5) var<storage, read_write> dst: array<V>;
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var kept: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      kept[k] = F(src[p.src_base + row.first + c]) + F(residual[p.residual_base + row.first + c]);
      if (HAS_BIAS) { kept[k] += F(bias[p.bias_base + c]); }
    }
  }
  let m = row_moments(&kept, row, f32(p.n), thread);
  let r = inverse_root(m.squares, m.smaller, f32(p.n), p.eps);
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) {
      var out = (kept[k] - m.mean - m.rest) * r * gamma_of(row, c);
      if (HAS_BETA) { out += beta_of(row, c); }
      dst[p.dst_base + row.first + c] = V(out);
    }
  }
}
