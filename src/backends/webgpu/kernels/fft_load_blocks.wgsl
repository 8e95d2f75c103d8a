// Rows of real parts, then imaginary parts.
fn load(row: u32, i: u32) -> vec2<f32> {
  let at = p.src_base + row * p.loaded * 2u + i;
  return vec2<f32>(src[at], src[at + p.loaded]);
}
