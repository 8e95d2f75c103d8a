// Scale and minimum number s of the eight six-bit pairs that Q4_K and Q5_K keep in 12 bytes.
fn scale_min(at: u32, s: u32) -> vec2f {
  if (s < 4u) { return vec2f(f32(u8_at(at + s) & 63u), f32(u8_at(at + s + 4u) & 63u)); }
  let low = u8_at(at + s + 4u);
  return vec2f(f32((low & 15u) + 16u * (u8_at(at + s - 4u) >> 6u)), f32((low >> 4u) + 16u * (u8_at(at + s) >> 6u)));
}
