// The conversions of one element: small floats, integers that do not fit a double, packed nibbles. Cast between all
// dtypes is in cast_test.cpp.
#include "core/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Format {
  std::string name;
  int exp_bits, mant_bits;
  bool ieee;          // the top exponent means infinity and NaN
  uint32_t largest;   // bits of the largest finite value
  uint32_t overflow;  // bits that larger values become
  uint32_t (*encode)(double);
  double (*decode)(uint32_t);

  int sign_bit() const { return exp_bits + mant_bits; }
  uint32_t negative(uint32_t bits) const { return bits | (1u << sign_bit()); }
};

const Format kFormats[] = {
    {"f16", 5, 10, true, 0x7BFF, 0x7C00, [](double x) -> uint32_t { return f16_from_double(x); },
     [](uint32_t b) { return f16_to_double(static_cast<uint16_t>(b)); }},
    {"bf16", 8, 7, true, 0x7F7F, 0x7F80, [](double x) -> uint32_t { return bf16_from_double(x); },
     [](uint32_t b) { return bf16_to_double(static_cast<uint16_t>(b)); }},
    {"e4m3", 4, 3, false, 0x7E, 0x7E, [](double x) -> uint32_t { return f8e4m3_from_double(x); },
     [](uint32_t b) { return f8e4m3_to_double(static_cast<uint8_t>(b)); }},
    {"e5m2", 5, 2, true, 0x7B, 0x7B, [](double x) -> uint32_t { return f8e5m2_from_double(x); },
     [](uint32_t b) { return f8e5m2_to_double(static_cast<uint8_t>(b)); }},
};

// The bits of the double that equals a small float, put together from its fields; no arithmetic on floats.
double by_bits(const Format& f, uint32_t bits) {
  const uint64_t sign = static_cast<uint64_t>((bits >> f.sign_bit()) & 1) << 63;
  const uint32_t top = (1u << f.exp_bits) - 1;
  const uint32_t exponent = (bits >> f.mant_bits) & top;
  uint64_t mant = bits & ((1u << f.mant_bits) - 1);
  if (f.ieee && exponent == top) return mant ? kNaN : std::bit_cast<double>(sign | (uint64_t{2047} << 52));
  if (!f.ieee && exponent == top && mant == (1u << f.mant_bits) - 1) return kNaN;  // E4M3: S.1111.111
  int e = static_cast<int>(exponent) - ((1 << (f.exp_bits - 1)) - 1);
  if (exponent == 0) {
    if (mant == 0) return std::bit_cast<double>(sign);
    ++e;
    for (; (mant >> f.mant_bits) == 0; mant <<= 1) --e;
    mant &= (1u << f.mant_bits) - 1;
  }
  return std::bit_cast<double>(sign | (static_cast<uint64_t>(e + 1023) << 52) | (mant << (52 - f.mant_bits)));
}

TEST(Convert, EveryCodeDecodesAsItsFieldsSay) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits < (2u << f.sign_bit()); ++bits) {
      const double expected = by_bits(f, bits), actual = f.decode(bits);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(actual)) << f.name << " " << bits;
      else
        ASSERT_EQ(std::bit_cast<uint64_t>(actual), std::bit_cast<uint64_t>(expected)) << f.name << " " << bits;
    }
}

TEST(Convert, KnownCodes) {
  EXPECT_EQ(f16_to_double(0x3C00), 1.0);
  EXPECT_EQ(f16_to_double(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(f16_to_double(0x7BFF), 65504.0);
  EXPECT_EQ(bf16_to_double(0x3F80), 1.0);
  EXPECT_EQ(f8e4m3_to_double(0x7E), 448.0);
  EXPECT_EQ(f8e4m3_to_double(0x78), 256.0);  // the top exponent is an ordinary one
  EXPECT_EQ(f8e4m3_to_double(0x01), std::ldexp(1.0, -9));
  EXPECT_EQ(f8e5m2_to_double(0x7B), 57344.0);
  EXPECT_EQ(f8e5m2_to_double(0x7C), kInf);
  EXPECT_EQ(f8e5m2_to_double(0x01), std::ldexp(1.0, -16));
}

TEST(Convert, EveryFiniteCodeRoundTrips) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits < (2u << f.sign_bit()); ++bits) {
      const double x = f.decode(bits);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(f.decode(f.encode(x)))) << f.name << " " << bits;
      } else if (std::isfinite(x)) {
        ASSERT_EQ(f.encode(x), bits) << f.name;
      }
    }
}

// Between two neighbours everything below the middle goes down and everything above it goes up, also when it differs
// from the middle only in the last bit of a double: a detour over float would round twice. The middle goes to even.
TEST(Convert, RoundsOnceToNearestEvenBetweenAllNeighbours) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits < f.largest; ++bits) {
      const double low = f.decode(bits), high = f.decode(bits + 1), middle = (low + high) / 2;
      const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      ASSERT_EQ(f.encode(middle), even) << f.name << " " << bits;
      ASSERT_EQ(f.encode(-middle), f.negative(even)) << f.name << " " << bits;
      for (const double below : {std::nextafter(middle, low), std::nextafter(low, high), low})
        ASSERT_EQ(f.encode(below), bits) << f.name << " " << bits;
      for (const double above : {std::nextafter(middle, high), std::nextafter(high, low), high})
        ASSERT_EQ(f.encode(above), bits + 1) << f.name << " " << bits;
      ASSERT_EQ(f.encode(-std::nextafter(middle, high)), f.negative(bits + 1)) << f.name << " " << bits;
    }
}

TEST(Convert, OverflowBeginsHalfAStepBeyondTheLargest) {
  for (const Format& f : kFormats) {
    const double largest = f.decode(f.largest), step = largest - f.decode(f.largest - 1), edge = largest + step / 2;
    EXPECT_EQ(f.encode(std::nextafter(edge, 0)), f.largest) << f.name;
    for (const double x : {edge, std::nextafter(edge, kInf), 2 * largest, 4 * largest, 1e300, kInf}) {
      EXPECT_EQ(f.encode(x), f.overflow) << f.name << " " << x;
      EXPECT_EQ(f.encode(-x), f.negative(f.overflow)) << f.name << " " << x;
    }
  }
}

TEST(Convert, TinyValuesBecomeZeroOrTheSmallestSubnormal) {
  for (const Format& f : kFormats) {
    const double smallest = f.decode(1);
    EXPECT_EQ(f.encode(smallest / 2), 0u) << f.name << ": a tie goes to even, which is zero";
    EXPECT_EQ(f.encode(std::nextafter(smallest / 2, 1)), 1u) << f.name;
    EXPECT_EQ(f.encode(std::nextafter(smallest / 2, 0)), 0u) << f.name;
    EXPECT_EQ(f.encode(std::numeric_limits<double>::denorm_min()), 0u) << f.name;
    EXPECT_EQ(f.encode(-std::numeric_limits<double>::denorm_min()), f.negative(0)) << f.name;
    EXPECT_EQ(f.encode(-0.0), f.negative(0)) << f.name;
  }
}

TEST(Convert, NaNStaysNaN) {
  for (const Format& f : kFormats)
    for (const double x : {kNaN, -kNaN, std::numeric_limits<double>::signaling_NaN()})
      EXPECT_TRUE(std::isnan(f.decode(f.encode(x)))) << f.name;
}

TEST(Convert, LargeIntegersRoundOnce) {
  const auto bf16 = [](int64_t x) { return bf16_from_double(i64_to_double_sticky(x)); };
  for (int e = 54; e < 62; ++e) {
    const int64_t power = int64_t{1} << e, tie = power + (power >> 8);  // bf16 has 8 significant bits
    const uint16_t low = bf16_from_double(static_cast<double>(power));
    EXPECT_EQ(bf16(tie), low) << e;
    EXPECT_EQ(bf16(tie + 1), low + 1) << e << ": as a double this is the tie itself";
    EXPECT_EQ(bf16(tie - 1), low) << e;
    EXPECT_EQ(bf16(-tie), low | 0x8000) << e;
    EXPECT_EQ(bf16(-tie - 1), (low + 1) | 0x8000) << e;
  }
  EXPECT_EQ(i64_to_double_sticky(std::numeric_limits<int64_t>::min()), -0x1p63);
  EXPECT_EQ(u64_to_double_sticky(std::numeric_limits<uint64_t>::max()), 0x1.fffffffffffffp63) << "never rounded up";
  EXPECT_EQ(u64_to_double_sticky(uint64_t{1} << 63), 0x1p63);
  for (const int64_t x : {int64_t{0}, int64_t{-1}, (int64_t{1} << 53) - 1, -(int64_t{1} << 53), int64_t{1} << 62})
    EXPECT_EQ(i64_to_double_sticky(x), static_cast<double>(x));
}

TEST(Convert, SaturateToInt) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(saturate_to_int(kNaN, -128, 127), 0);
  EXPECT_EQ(saturate_to_int(kNaN, 1, 2), 0);
  EXPECT_EQ(saturate_to_int(1.9, -128, 127), 1);
  EXPECT_EQ(saturate_to_int(-1.9, -128, 127), -1);
  EXPECT_EQ(saturate_to_int(127.9, -128, 127), 127);
  EXPECT_EQ(saturate_to_int(-128.9, -128, 127), -128);
  EXPECT_EQ(saturate_to_int(-0.5, 0, 255), 0);
  EXPECT_EQ(saturate_to_int(kInf, kMin, kMax), kMax);
  EXPECT_EQ(saturate_to_int(-kInf, kMin, kMax), kMin);
  EXPECT_EQ(saturate_to_int(0x1p63, kMin, kMax), kMax);
  EXPECT_EQ(saturate_to_int(-0x1p63, kMin, kMax), kMin);
  EXPECT_EQ(saturate_to_int(std::nextafter(0x1p63, 0), kMin, kMax), kMax - 1023);
}

TEST(Convert, SaturateToUint) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(saturate_to_uint(kNaN), 0u);
  EXPECT_EQ(saturate_to_uint(-kInf), 0u);
  EXPECT_EQ(saturate_to_uint(-0.5), 0u);
  EXPECT_EQ(saturate_to_uint(1.9), 1u);
  EXPECT_EQ(saturate_to_uint(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(saturate_to_uint(std::nextafter(0x1p64, 0)), kMax - 2047);
  EXPECT_EQ(saturate_to_uint(0x1p64), kMax);
  EXPECT_EQ(saturate_to_uint(kInf), kMax);
}

TEST(Convert, NibblesAreTwosComplementLowHalfFirst) {
  const uint8_t packed[] = {0x21, 0xF8};
  EXPECT_EQ(i4_unpack(packed, 0), 1);
  EXPECT_EQ(i4_unpack(packed, 1), 2);
  EXPECT_EQ(i4_unpack(packed, 2), -8);
  EXPECT_EQ(i4_unpack(packed, 3), -1);
  for (int before = 0; before < 256; ++before)
    for (int64_t index : {0, 1})
      for (int value = -8; value < 8; ++value) {
        auto byte = static_cast<uint8_t>(before);
        const int other = i4_unpack(&byte, 1 - index);
        i4_pack(&byte, index, value);
        ASSERT_EQ(i4_unpack(&byte, index), value);
        ASSERT_EQ(i4_unpack(&byte, 1 - index), other) << "the other half of the byte changed";
      }
}

}  // namespace
}  // namespace rlx
