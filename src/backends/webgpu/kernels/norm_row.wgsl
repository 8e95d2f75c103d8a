// Statistics of a row that its threads hold. A row's mean is rounded, which shows where it is large beside the
// deviations: what it leaves is subtracted, too.
// @include "rows3.wgsl"
// @include "norm_root.wgsl"
override KEPT: u32 = 4u;          // loads that a thread keeps
override CENTRED: bool = true;    // less the mean; an rms norm is not

struct Moments {
  mean: f32,
  rest: f32,     // of the mean: x - mean - rest is the deviation
  squares: f32,  // sum of squared deviations
  smaller: f32,  // the same of deviations * SMALLER
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
  var part = vec3<f32>(0.0, 0.0, 0.0);
  for (var k = 0u; k < KEPT; k++) {
    if (lane + k * LANES < row.count) {
      let d = (*kept)[k] - m.mean;
      let s = d * SMALLER;
      part += vec3<f32>(lanes_sum(d), lanes_sum(d * d), lanes_sum(s * s));
    }
  }
  let sums = row_sum3(part, thread);
  m.squares = sums.y;
  m.smaller = sums.z;
  if (CENTRED) {
    m.rest = sums.x / n;
    m.squares = centred_squares(sums.y, m.rest, n);
  }
  return m;
}
