// f16 and fp8 bits as f32, branch-free, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace rlx::cpu {

// The exponent is re-biased by a multiplication, which also gets denormals right.
[[gnu::always_inline]] inline float half_to_float(uint16_t h) {
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7FFF) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = magnitude | 0x7F80'0000;  // infinity and NaN keep their mantissa
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  return std::bit_cast<float>(((h & 0x7C00) == 0x7C00 ? special : finite) | sign);
}

[[gnu::always_inline]] inline float e5m2_to_float(uint8_t b) { return half_to_float(static_cast<uint16_t>(b << 8)); }

// No infinities; all mantissa bits set is NaN.
[[gnu::always_inline]] inline float e4m3_to_float(uint8_t b) {
  const uint32_t magnitude = b & 0x7Fu;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1p120f);
  const uint32_t sign = static_cast<uint32_t>(b & 0x80) << 24;
  return std::bit_cast<float>((magnitude == 0x7F ? 0x7FC0'0000u : finite) | sign);
}

}  // namespace rlx::cpu
