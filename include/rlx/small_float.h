// Floats of a byte and less, as the codes that one byte per element holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rlx {

// Sign, exponent and mantissa bits; "fn" has no infinities, "uz" no negative zero either (its code is the one NaN).
// f8e8m0 is a power of two, 2^(code - 127), code 255 NaN; f4e2m1 stands in the low half of its byte and has no NaN.
enum class SmallFloat : int32_t { kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1 };
constexpr auto names_of(SmallFloat) {
  return std::array<std::string_view, 6>{"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"};
}

// How f8e8m0 chooses between two powers of two; the others round to nearest even.
enum class PowerRounding : int32_t { kUp, kDown, kNearest };  // the middle goes up
constexpr auto names_of(PowerRounding) { return std::array<std::string_view, 3>{"up", "down", "nearest"}; }

}  // namespace rlx
