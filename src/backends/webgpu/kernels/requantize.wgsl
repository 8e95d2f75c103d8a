// Sums of products of bytes to codes: clamp(round((bias + sum) * mult) + zero, -128, 127), exact: the product is taken in
// 64 bits of integers, since f32 holds neither factor's digits.
fn requantize(sum: i32, bias_value: i32, mult_bits: u32, out_zero: i32) -> i32 {
  // |bias + sum| < 2^32: the magnitudes add up in u32 where the signs agree.
  let sum_size = select(u32(sum), 0u - u32(sum), sum < 0);
  let bias_size = select(u32(bias_value), 0u - u32(bias_value), bias_value < 0);
  let sum_negative = (sum < 0);
  let bias_negative = (bias_value < 0);
  let same = sum_negative == bias_negative;
  let magnitude = select(max(sum_size, bias_size) - min(sum_size, bias_size), sum_size + bias_size, same);
  let negative_sum = select(sum_negative, bias_negative, bias_size > sum_size);
  let negative = negative_sum != ((mult_bits >> 31u) != 0u);
  let exponent = (mult_bits >> 23u) & 0xffu;
  let mantissa = (mult_bits & 0x7fffffu) | select(0u, 0x800000u, exponent != 0u);
  // magnitude * mantissa = high * 2^32 + low
  let low_part = (magnitude & 0xffffu) * (mantissa & 0xffffu);
  let middle = (magnitude >> 16u) * (mantissa & 0xffffu) + (low_part >> 16u);
  let middle2 = (magnitude & 0xffffu) * (mantissa >> 16u) + (middle & 0xffffu);
  let high = (magnitude >> 16u) * (mantissa >> 16u) + (middle >> 16u) + (middle2 >> 16u);
  let low = (middle2 << 16u) | (low_part & 0xffffu);
  // times 2^(exponent - 150), rounded half to even; 1000 is beyond every code.
  let shift = 150 - i32(max(exponent, 1u));
  var code = 0;
  if (shift <= 0) {
    if ((high | low) != 0u) { code = 1000; }
    if (high == 0u && low < 1000u && -shift < 10) { code = i32(min(low << u32(-shift), 1000u)); }
  } else if (shift < 64) {
    let s = u32(shift);
    var whole_high = 0u;
    var whole = 0u;
    var half = false;   // the first bit that is cut off
    var rest = false;   // any behind it
    if (s < 32u) {
      whole_high = high >> s;
      whole = (low >> s) | (high << (32u - s));
      half = ((low >> (s - 1u)) & 1u) != 0u;
      rest = (low & ((1u << (s - 1u)) - 1u)) != 0u;
    } else if (s == 32u) {
      whole = high;
      half = (low >> 31u) != 0u;
      rest = (low & 0x7fffffffu) != 0u;
    } else {
      whole = high >> (s - 32u);
      half = ((high >> (s - 33u)) & 1u) != 0u;
      rest = (high & ((1u << (s - 33u)) - 1u)) != 0u || low != 0u;
    }
    if (whole_high != 0u || whole >= 1000u) {
      code = 1000;
    } else {
      code = i32(whole + select(0u, 1u, half && (rest || (whole & 1u) != 0u)));
    }
  }
  return clamp(select(code, -code, negative) + out_zero, -128, 127);
}
