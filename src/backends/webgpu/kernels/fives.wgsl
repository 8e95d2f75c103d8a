// Sixteen bytes of nibbles and 32 fifth bits, by the lane's elements of x as in nibbles.wgsl. Less 16, in the upper five bits
// of a byte: the sum is 8 times as large.
fn fifth(bits: u32) -> u32 { return ((bits & 0xfu) * 0x10204080u) & 0x80808080u; }  // bits 0 to 3 lead a byte each
fn fifths(bits: u32) -> vec4u { return vec4u(fifth(bits), fifth(bits >> 4u), fifth(bits >> 8u), fifth(bits >> 12u)); }
fn signed_fives_by_x(q: vec4u, bits: u32) -> f32 {
  return number(by_digits((((q << vec4u(3u)) & vec4u(0x78787878u)) | fifths(bits)) ^ vec4u(0x80808080u), x0) +
                by_digits((((q >> vec4u(1u)) & vec4u(0x78787878u)) | fifths(bits >> 16u)) ^ vec4u(0x80808080u), x1));
}
