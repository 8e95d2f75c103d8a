// Rows of real parts, then imaginary parts.
fn store(row: u32, i: u32, x: vec2<f32>) {
  let at = p.dst_base + row * p.stored * 2u + i;
  dst[at] = x.x;
  dst[at + p.stored] = x.y;
}
