// The low and the high nibbles of four bytes, less NIBBLE_ZERO. A conversion from integers costs more than these: the
// nibble becomes digits of a float of known exponent, which one fused step scales and shifts back.
const DIGITS: u32 = 0x4b000000u;  // 2^23
fn low_nibbles(q: u32) -> vec4f {
  let upper = q >> 16u;
  return vec4f(bitcast<f32>((q & 0xfu) | DIGITS) - (8388608.0 + NIBBLE_ZERO),
               fma(bitcast<f32>((q & 0xf00u) | DIGITS), 0.00390625, -(32768.0 + NIBBLE_ZERO)),
               bitcast<f32>((upper & 0xfu) | DIGITS) - (8388608.0 + NIBBLE_ZERO),
               fma(bitcast<f32>((upper & 0xf00u) | DIGITS), 0.00390625, -(32768.0 + NIBBLE_ZERO)));
}
fn high_nibbles(q: u32) -> vec4f {
  let upper = q >> 16u;
  return vec4f(fma(bitcast<f32>((q & 0xf0u) | DIGITS), 0.0625, -(524288.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((q & 0xf000u) | DIGITS), 0.000244140625, -(2048.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((upper & 0xf0u) | DIGITS), 0.0625, -(524288.0 + NIBBLE_ZERO)),
               fma(bitcast<f32>((upper & 0xf000u) | DIGITS), 0.000244140625, -(2048.0 + NIBBLE_ZERO)));
}
