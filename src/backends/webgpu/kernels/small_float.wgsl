// The values of eight-bit floats (spec 10, 5.3).
fn f32_of_e4m3(code: u32) -> f32 {
  let size = code & 0x7fu;
  let normal = bitcast<f32>((size << 20u) + (120u << 23u));
  let value = select(normal, f32(size) * 0.001953125, size < 8u);
  let nan = bitcast<f32>(select(0u, 0x7fc00000u, size == 0x7fu));
  return select(select(value, nan, size == 0x7fu), -value, code >= 0x80u && size != 0x7fu);
}
fn f32_of_e5m2(code: u32) -> f32 {
  let size = code & 0x7fu;
  let bits = select((size << 21u) + (112u << 23u), 0x7f800000u | ((size & 3u) << 21u), size >= 0x7cu);
  let value = select(bitcast<f32>(bits), f32(size) * 0.0000152587890625, size < 4u);
  return select(value, -value, code >= 0x80u);
}
