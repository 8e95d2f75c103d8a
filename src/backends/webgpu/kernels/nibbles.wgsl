// Sixteen bytes of nibbles by the lane's elements of x: the low ones by its first 16, the high ones by the others.
// As they are:
fn nibbles_by_x(q: vec4u) -> f32 {
  return number(by_digits(q & vec4u(0x0f0f0f0fu), x0) + by_digits((q >> vec4u(4u)) & vec4u(0x0f0f0f0fu), x1));
}
// Less 8: in the upper half of a byte, whose first bit then is the sign. The sum is 16 times as large.
fn signed_nibbles_by_x(q: vec4u) -> f32 {
  return number(by_digits(((q << vec4u(4u)) & vec4u(0xf0f0f0f0u)) ^ vec4u(0x80808080u), x0) +
                by_digits((q & vec4u(0xf0f0f0f0u)) ^ vec4u(0x80808080u), x1));
}
