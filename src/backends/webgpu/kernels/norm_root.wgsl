// Sums of squares of any f32: beside the plain sum one of numbers that are SMALLER times as large, for where the plain
// one overflows.
const SMALLER: f32 = 8.271806125530277e-25;  // 2^-80

// 1 / sqrt(sum / n + eps); eps is nothing beside what overflows.
fn inverse_root(plain: f32, smaller: f32, n: f32, eps: f32) -> f32 {
  return select(1.0 / sqrt(plain / n + eps), SMALLER / sqrt(smaller / n), inf_of(plain));
}
// Squares around mean + rest, of those around the mean. Where they overflow they stay so: rest is nothing beside them;
// NaN too.
fn centred_squares(squares: f32, rest: f32, n: f32) -> f32 {
  return select(max(squares - n * rest * rest, 0.0), squares, inf_of(squares) || nan_of(squares));
}
