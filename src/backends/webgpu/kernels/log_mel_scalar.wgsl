// What log_mel's kernels take of a mel power.
// @include "scalar.wgsl"
fn log_power(x: f32) -> f32 {
  return f_log(select(select(x, 1e-10, x < 1e-10), x, nan_of(x))) * 0.43429448;
}
