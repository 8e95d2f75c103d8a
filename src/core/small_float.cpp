#include "core/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rlx {

namespace {

// A sign bit, and below it exponent and mantissa.
struct Layout {
  int exp_bits, mant_bits, bias;
  uint8_t largest;   // magnitude of the largest finite value
  uint8_t overflow;  // of what lies above it, unless it saturates
  uint8_t nan;
  bool signed_zero = true;  // else the code of -0 is the NaN

  uint8_t sign_bit() const { return static_cast<uint8_t>(1 << (exp_bits + mant_bits)); }
};

constexpr Layout kE4M3FN = {4, 3, 7, 0x7E, 0x7F, 0x7F};
constexpr Layout kE4M3FNUZ = {4, 3, 8, 0x7F, 0x80, 0x80, false};
constexpr Layout kE5M2 = {5, 2, 15, 0x7B, 0x7C, 0x7E};
constexpr Layout kE5M2FNUZ = {5, 2, 16, 0x7F, 0x80, 0x80, false};
constexpr Layout kE2M1 = {2, 1, 1, 0x7, 0x7, 0x8};  // NaN becomes a zero of the other sign, as in ml_dtypes

const Layout& layout_of(SmallFloat format) {
  switch (format) {
    case SmallFloat::kF8E4M3FN: return kE4M3FN;
    case SmallFloat::kF8E4M3FNUZ: return kE4M3FNUZ;
    case SmallFloat::kF8E5M2: return kE5M2;
    case SmallFloat::kF8E5M2FNUZ: return kE5M2FNUZ;
    default: return kE2M1;
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr uint8_t kPowerNaN = 0xFF, kLargestPower = 0xFE;
constexpr int kPowerBias = 127;

uint8_t encode_power(double x, bool saturate, PowerRounding rounding) {
  const double a = std::fabs(x);
  if (std::isnan(a)) return kPowerNaN;
  if (!saturate && (a < 0x1p-127 || a > 0x1p127)) return kPowerNaN;
  if (a <= 0x1p-127) return 0;
  if (a >= 0x1p127) return kLargestPower;
  int e = 0;
  const double mantissa = 2 * std::frexp(a, &e);  // [1, 2): a = mantissa * 2^(e - 1)
  const bool up = rounding == PowerRounding::kUp        ? mantissa > 1
                  : rounding == PowerRounding::kNearest ? mantissa >= 1.5
                                                        : false;
  return static_cast<uint8_t>(e - 1 + kPowerBias + (up ? 1 : 0));
}

}  // namespace

uint8_t encode(SmallFloat format, double x, bool saturate, PowerRounding rounding) {
  if (format == SmallFloat::kF8E8M0) return encode_power(x, saturate, rounding);
  const Layout& f = layout_of(format);
  const double a = std::fabs(x);
  int64_t code = f.nan;
  if (std::isfinite(a)) {
    int e = 0;
    std::frexp(a, &e);
    const int exponent = std::max(a == 0 ? 1 - f.bias : e - 1, 1 - f.bias);  // subnormals share the smallest exponent
    // In units of the last place; the implicit bit, and a mantissa that rounds up, carry into the exponent.
    const double ulps = std::nearbyint(std::ldexp(a, f.mant_bits - exponent));
    code = (int64_t{exponent + f.bias - 1} << f.mant_bits) + static_cast<int64_t>(ulps);
  }
  if (!std::isnan(a) && (std::isinf(a) || code > f.largest)) code = saturate ? f.largest : f.overflow;
  const bool has_sign = f.signed_zero || (code != 0 && code != f.nan);
  return static_cast<uint8_t>(code ^ (has_sign && std::signbit(x) ? f.sign_bit() : 0));
}

double decode(SmallFloat format, uint8_t code) {
  if (format == SmallFloat::kF8E8M0) return code == kPowerNaN ? kNaN : std::ldexp(1.0, code - kPowerBias);
  const Layout& f = layout_of(format);
  if (!f.signed_zero && code == f.nan) return kNaN;
  const double sign = (code & f.sign_bit()) != 0 ? -1.0 : 1.0;
  const int magnitude = code & (f.sign_bit() - 1), mantissa = magnitude & ((1 << f.mant_bits) - 1);
  const int exponent = magnitude >> f.mant_bits;
  if (magnitude > f.largest)
    return magnitude == f.overflow && f.overflow != f.nan ? sign * std::numeric_limits<double>::infinity()
                                                          : std::copysign(kNaN, sign);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mant_bits);
  return sign * std::ldexp(mantissa + (1 << f.mant_bits), exponent - f.bias - f.mant_bits);
}

}  // namespace rlx
