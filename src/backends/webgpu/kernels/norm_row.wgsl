// Statistics of a row that its threads hold. A row's mean is rounded, which shows where it is large beside the
// deviations: what it leaves is subtracted, too.
// @include "rows.wgsl"
override KEPT: u32 = 4u;          // loads that a thread keeps
override CENTRED: bool = true;    // less the mean; an rms norm is not

struct Moments {
  mean: f32,
  rest: f32,     // of the mean: x - mean - rest is the deviation
  squares: f32,  // sum of squared deviations
}

fn row_moments(kept: ptr<function, array<F, KEPT>>, row: Row, n: f32, thread: u32) -> Moments {
  let lane = lane_of(thread);
  var m: Moments;
  if (CENTRED) {
    var sum = 0.0;
    for (var k = 0u; k < KEPT; k++) {
      if (lane + k * LANES < row.count) { sum += lanes_sum((*kept)[k]); }
    }
    m.mean = row_sum(sum, thread) / n;
  }
  var sum = 0.0;
  var squares = 0.0;
  for (var k = 0u; k < KEPT; k++) {
    if (lane + k * LANES < row.count) {
      let d = (*kept)[k] - m.mean;
      sum += lanes_sum(d);
      squares += lanes_sum(d * d);
    }
  }
  m.squares = row_sum(squares, thread);
  if (CENTRED) {
    m.rest = row_sum(sum, thread) / n;
    m.squares = max(m.squares - n * m.rest * m.rest, 0.0);
  }
  return m;
}
