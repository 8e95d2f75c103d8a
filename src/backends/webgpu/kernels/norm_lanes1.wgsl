// norm_root.wgsl for loads: squares around the mean, which leaves `rest`.
fn inverse_roots(squares: F, smaller: F, rest: F, n: f32, eps: f32) -> F {
  return inverse_root(centred_squares(squares, rest, n), smaller, n, eps);
}
