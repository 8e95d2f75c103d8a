// What a step with the factor exp(x) leaves of a state. Where the factor is near 1 the state changes by a part of itself: the
// factor, rounded to an f32, would be off by the same in every step of a long memory.
struct Decay {
  factor: f32,
  change: f32,   // factor - 1, where that is small
  small: bool,
}
fn decay_of(x: f32) -> Decay {
  let change = x * (1.0 + x * (0.5 + x * (0.16666667 + x * (0.041666668 + x * (0.008333334 + x * 0.0013888889)))));
  return Decay(exp(x), change, abs(x) < 0.25);
}
