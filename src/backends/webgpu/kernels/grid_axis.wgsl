// Which elements along an axis a coordinate of grid_sample reads, and their weights (backends/host/grid_axis.h says why).
// Needs scalar.wgsl.
override MODE: u32 = 0u;       // 0 linear, 1 nearest, 2 cubic
override PADDING: u32 = 0u;    // 0 zeros, 1 border, 2 reflection
override ALIGN: bool = false;

const GRID_TAPS: u32 = select(select(2u, 1u, MODE == 1u), 4u, MODE == 2u);

struct AxisTaps {
  index: array<i32, 4>,        // -1: none
  part: array<f32, 4>,
}

fn axis_low() -> f32 { return select(-0.5, 0.0, ALIGN); }
fn axis_high(size: u32) -> f32 { return f32(size) - select(0.5, 1.0, ALIGN); }

fn reflected(at: f32, size: u32) -> f32 {
  let low = axis_low();
  let high = axis_high(size);
  let range = high - low;
  if (!(range > 0.0)) { return low; }
  let below = at < low;
  if (!below && at <= high) { return at; }
  let beyond = select(at - high, low - at, below);
  var turns = floor(beyond / range);
  var rest = beyond - turns * range;
  var even = turns - 2.0 * floor(turns * 0.5) == 0.0;
  if (abs(at) >= 4194304.0) {   // products have no halves left out there: count in halves, as integers
    let halves = u32(2.0 * abs(at)) - select(u32(2.0 * high), u32(-2.0 * low), below);
    even = halves / u32(2.0 * range) % 2u == 0u;
    rest = f32(halves % u32(2.0 * range)) * 0.5;
  }
  return select(high - rest, low + rest, below == even);
}

fn axis_element(i: i32, size: u32) -> i32 {
  if (PADDING == 0u) { return select(-1, i, i >= 0 && i < i32(size)); }
  var at = i;
  if (PADDING == 2u) { at = i32(reflected(f32(i), size)); }
  return clamp(at, 0, i32(size) - 1);
}

fn cubic_near(d: f32) -> f32 { return (1.25 * d - 2.25) * d * d + 1.0; }
fn cubic_far(d: f32) -> f32 { return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0; }

fn axis_taps(normalized: f32, size: u32) -> AxisTaps {
  let n = select(normalized, -1.0, nan_of(normalized));
  var at = select(((n + 1.0) * f32(size) - 1.0) / 2.0, (n + 1.0) / 2.0 * (f32(size) - 1.0), ALIGN);
  at = clamp(at, -1073741824.0, 1073741824.0);   // all the same out there
  if (MODE == 1u) { at = round(at); }
  if (at < axis_low() || at > axis_high(size)) {
    if (PADDING == 1u) { at = clamp(at, 0.0, f32(size) - 1.0); }
    if (PADDING == 2u) { at = reflected(at, size); }
  }
  var taps: AxisTaps;
  if (MODE == 1u) {
    taps.index[0] = axis_element(i32(at), size);
    taps.part[0] = 1.0;
    return taps;
  }
  let left = floor(at);
  let t = at - left;
  if (MODE == 0u) {
    taps.part[0] = 1.0 - t;
    taps.part[1] = t;
  } else {
    taps.part[0] = cubic_far(t + 1.0);
    taps.part[1] = cubic_near(t);
    taps.part[2] = cubic_near(1.0 - t);
    taps.part[3] = cubic_far(2.0 - t);
  }
  for (var k = 0u; k < GRID_TAPS; k++) {
    taps.index[k] = axis_element(i32(left) + i32(k) + 1 - i32(GRID_TAPS / 2u), size);
  }
  return taps;
}
