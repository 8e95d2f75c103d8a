// Four bytes as numbers, less BYTE_ZERO: digits of floats of known exponents, see float_digits.wgsl.
// @include "float_digits.wgsl"
fn byte_codes(q: u32) -> vec4f {
  return vec4f(bitcast<f32>((q & 0xffu) | digits) - (8388608.0 + BYTE_ZERO),
               fma(bitcast<f32>((q & 0xff00u) | digits), 0.00390625, -(32768.0 + BYTE_ZERO)),
               bitcast<f32>(((q >> 16u) & 0xffu) | digits) - (8388608.0 + BYTE_ZERO),
               bitcast<f32>((q >> 24u) | digits) - (8388608.0 + BYTE_ZERO));
}
// Bits 0 to 3 as the fifth bits of four bytes.
fn fifth_bits(bits: u32) -> u32 { return (((bits & 0xfu) * 0x00204081u) & 0x01010101u) << 4u; }
