// The largest element of the whole row and its sum, of what softmax_stats.wgsl found in its chunks.
fn merged_stats(row: Row, lane: u32, thread: u32) -> vec2<f32> {
  var top = -F32_MAX;
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      top = f_max(top, stats[p.stats_base + row.chunk0 + j * p.inner].x);
    }
  }
  top = row_max(top, thread);
  var sum = 0.0;
  if (row.live) {
    for (var j = lane; j < p.chunks; j += LANES) {
      let part = stats[p.stats_base + row.chunk0 + j * p.inner];
      sum += part.y * exp(part.x - top);
    }
  }
  return vec2<f32>(top, row_sum(sum, thread));
}
