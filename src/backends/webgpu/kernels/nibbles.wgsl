// The low and the high nibbles of four bytes, less NIBBLE_ZERO: digits of floats of known exponents, see float_digits.wgsl.
// @include "float_digits.wgsl"
fn low_nibbles(q: u32) -> vec4f {
  let upper = q >> 16u;
  return vec4f(bitcast<f32>((q & 0xfu) | digits) - (8388608.0 + NIBBLE_ZERO),
               fma(bitcast<f32>((q & 0xf00u) | digits), 0.00390625, -(32768.0 + NIBBLE_ZERO)),
               bitcast<f32>((upper & 0xfu) | digits) - (8388608.0 + NIBBLE_ZERO),
               fma(bitcast<f32>((upper & 0xf00u) | digits), 0.00390625, -(32768.0 + NIBBLE_ZERO)));
}
fn high_nibbles(q: u32) -> vec4f {
  let upper = q >> 16u;
  return vec4f(fma(bitcast<f32>((q & 0xf0u) | digits), 0.0625, -(524288.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((q & 0xf000u) | digits), 0.000244140625, -(2048.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((upper & 0xf0u) | digits), 0.0625, -(524288.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((upper & 0xf000u) | digits), 0.000244140625, -(2048.0 + NIBBLE_ZERO)));
}
