// loss = log(sum of exp(row - max)) + max - row[label] per row of logits [rows, classes], from the statistics of the
// row's chunks. A label out of range gives 0. One thread per row.
// @include "scalar.wgsl"
alias T = f32;            // @type f32 | f16

struct Params {
  rows: u32,
  classes: u32,
  chunks: u32,            // of a row in stats
  src_base: u32,
  labels_base: u32,
  stats_base: u32,
  dst_base: u32,
}
@group(0) @binding(0) var<storage, read>       src: array<T>;
@group(0) @binding(1) var<storage, read>       labels: array<i32>;
@group(0) @binding(2) var<storage, read>       stats: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> dst: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let row = id.x + id.y * groups.x * 64u;
  if (row >= p.rows) { return; }
  var top = -F32_MAX;
  for (var j = 0u; j < p.chunks; j++) { top = f_max(top, stats[p.stats_base + row * p.chunks + j].x); }
  var sum = 0.0;
  for (var j = 0u; j < p.chunks; j++) {
    let part = stats[p.stats_base + row * p.chunks + j];
    sum += part.y * exp(part.x - top);
  }
  let label = labels[p.labels_base + row];
  var loss = 0.0;
  if (label >= 0 && u32(label) < p.classes) {
    loss = f_log(sum) + (top - f32(src[p.src_base + row * p.classes + u32(label)]));
  }
  dst[p.dst_base + row] = T(loss);
}
