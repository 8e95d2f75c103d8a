// Mean, what the mean leaves and 1 / sqrt(variance + eps) of whole rows, of the means and squares of their chunks.
fn merged_moments(row: Row, lane: u32, thread: u32) -> vec3<f32> {
  let n = f32(p.cols * VECTOR);
  var sum = 0.0;
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      sum += stats[p.stats_base + row.chunk0 + j * p.inner].x * f32(min(p.chunk, p.cols - j * p.chunk) * VECTOR);
    }
  }
  let mean = row_sum(sum, thread) / n;
  var rest = 0.0;
  var squares = 0.0;
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      let part = stats[p.stats_base + row.chunk0 + j * p.inner];
      let size = f32(min(p.chunk, p.cols - j * p.chunk) * VECTOR);
      let d = part.x - mean;
      rest += d * size;
      squares += part.y + d * d * size;
    }
  }
  rest = row_sum(rest, thread) / n;
  let variance = max(row_sum(squares, thread) / n - rest * rest, 0.0);
  return vec3<f32>(mean, rest, 1.0 / sqrt(variance + p.eps));
}
