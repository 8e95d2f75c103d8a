// loss = log(1 + sum of exp(row[j] - row[label]) over the other classes) per row of logits [rows, classes], from the statistics
// that cross_entropy_stats.wgsl has of the row's chunks. A label out of range gives 0. One thread per row.
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

// log(1 + x) for x from 0 to 1.
fn log_1p(x: f32) -> f32 {
  let s = x / (2.0 + x);
  let z = s * s;
  return 2.0 * s * (1.0 + z * (0.33333334 + z * (0.2 + z * (0.14285715 + z * (0.11111111 + z * (0.09090909 + z * (0.07692308 + z * 0.06666667)))))));
}

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
    let own = f32(src[p.src_base + row * p.classes + u32(label)]);
    let others = f_log(sum) + (top - own);
    let zero = bitcast<f32>(bitcast<u32>(own) & 0u);
    loss = select(f_max(others, 0.0) + log_1p(exp(-abs(others))), zero / zero, inf_of(own) && own > 0.0);  // inf - inf
  }
  dst[p.dst_base + row] = T(loss);
}
