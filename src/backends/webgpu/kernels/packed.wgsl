// One element, T, from the low bits of a word. KIND: 0 i8, 1 u8, 2 bool, 3 i16, 4 u16, 5 bf16.
fn element_of(bits: u32) -> T {
  if (KIND == 0u) { return T(bitcast<i32>(bits << 24u) >> 24u); }
  if (KIND == 1u) { return T(bits & 0xffu); }
  if (KIND == 2u) { return T(min(bits & 0xffu, 1u)); }
  if (KIND == 3u) { return T(bitcast<i32>(bits << 16u) >> 16u); }
  if (KIND == 4u) { return T(bits & 0xffffu); }
  return T(bitcast<f32>(bits << 16u));
}
