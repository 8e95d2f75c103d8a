// y = exp(x - max) / sum along an axis whose rows fit the registers of LANES threads: one read, one write. A NaN or
// +inf in a row reaches its sum; a row of -inf alone is 0 / 0.
// @include "rows.wgsl"
// @include "lanes1.wgsl"
alias V = f32;           // @type f32 | f16 | vec4<f32> | vec4<f16>
override KEPT: u32 = 4u; // loads that a thread keeps

struct Params {
  rows: u32,
  cols: u32,
  inner: u32,
  chunks: u32,
  chunk: u32,
  src_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<V>;
@group(0) @binding(1) var<storage, read_write> dst: array<V>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let row = row_of(group, groups, thread);
  let lane = lane_of(thread);
  var kept: array<F, KEPT>;
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    kept[k] = F(-F32_MAX);
    if (c < row.count) { kept[k] = F(src[p.src_base + row.first + c * p.inner]); }
  }
  var top = -F32_MAX;
  for (var k = 0u; k < KEPT; k++) { top = max(top, lanes_max(kept[k])); }
  top = row_max(top, thread);
  var sum = 0.0;
  for (var k = 0u; k < KEPT; k++) {
    kept[k] = exp(kept[k] - top);
    if (lane + k * LANES < row.count) { sum += lanes_sum(kept[k]); }
  }
  let scale = 1.0 / row_sum(sum, thread);
  for (var k = 0u; k < KEPT; k++) {
    let c = lane + k * LANES;
    if (c < row.count) { dst[p.dst_base + row.first + c * p.inner] = V(kept[k] * scale); }
  }
}
