// Mean, what the mean leaves and 1 / sqrt(variance + eps) of whole rows, of what norm_stats.wgsl found in
// their chunks.
// @include "rows3.wgsl"
// @include "norm_root.wgsl"
fn merged_moments(row: Row, lane: u32, thread: u32) -> vec3<f32> {
  let n = f32(p.cols * VECTOR);
  var sum = 0.0;
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      sum += stats[p.stats_base + row.chunk0 + j * p.inner].x * f32(min(p.chunk, p.cols - j * p.chunk) * VECTOR);
    }
  }
  let mean = row_sum(sum, thread) / n;
  var part = vec3<f32>(0.0, 0.0, 0.0);
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      let stat = stats[p.stats_base + row.chunk0 + j * p.inner];
      let size = f32(min(p.chunk, p.cols - j * p.chunk) * VECTOR);
      let d = stat.x - mean + stat.y;
      let s = d * SMALLER;
      part += vec3<f32>(d * size, stat.z * stat.z + d * d * size, stat.w * stat.w + s * s * size);
    }
  }
  let sums = row_sum3(part, thread);
  let rest = sums.x / n;
  return vec3<f32>(mean, rest, inverse_root(centred_squares(sums.y, rest, n), sums.z, n, p.eps));
}
