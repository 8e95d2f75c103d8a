// 16 codes in bytes by the lane's first or last 16 elements of x.
// @include "byte_codes.wgsl"
fn first_by_x(q: vec4u) -> f32 {
  return dot(byte_codes(q.x), xq0) + dot(byte_codes(q.y), xq1) + dot(byte_codes(q.z), xq2) +
         dot(byte_codes(q.w), xq3);
}
fn last_by_x(q: vec4u) -> f32 {
  return dot(byte_codes(q.x), xq4) + dot(byte_codes(q.y), xq5) + dot(byte_codes(q.z), xq6) +
         dot(byte_codes(q.w), xq7);
}
// The same of nibbles and 32 fifth bits.
fn fives_by_x(q: vec4u, bits: u32) -> f32 {
  let low = (q & vec4u(0x0f0f0f0fu)) |
            vec4u(fifth_bits(bits), fifth_bits(bits >> 4u), fifth_bits(bits >> 8u), fifth_bits(bits >> 12u));
  let high = ((q >> vec4u(4u)) & vec4u(0x0f0f0f0fu)) |
             vec4u(fifth_bits(bits >> 16u), fifth_bits(bits >> 20u), fifth_bits(bits >> 24u), fifth_bits(bits >> 28u));
  return first_by_x(low) + last_by_x(high);
}
