// norm_lanes1.wgsl for loads of four elements.
fn inverse_root_of(squares: f32, smaller: f32, rest: f32, n: f32, eps: f32) -> f32 {
  return inverse_root(centred_squares(squares, rest, n), smaller, n, eps);
}
fn inverse_roots(squares: F, smaller: F, rest: F, n: f32, eps: f32) -> F {
  return F(inverse_root_of(squares.x, smaller.x, rest.x, n, eps), inverse_root_of(squares.y, smaller.y, rest.y, n, eps),
           inverse_root_of(squares.z, smaller.z, rest.z, n, eps), inverse_root_of(squares.w, smaller.w, rest.w, n, eps));
}
