// Tensor::cast between every pair of dtypes, judged by spec 10, 1.4 written down a second time, on long doubles, which
// hold every double and every 64-bit integer.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "core/convert.h"
#include "rlx/tensor.h"
#include "support/random.h"

namespace rlx {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "the judge needs a float that holds 64-bit integers");

template <class T>
Tensor vector_of(DType dtype, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, {static_cast<int64_t>(values.size())}, values);
}

// Every value of the small dtypes; corners and random bits of the large ones.
Tensor source_of(DType dtype) {
  test::Rng rng(7);
  std::vector<double> corners = {0.0,   -0.0,   0.25,   0.5,    0.75,   1.0,    1.5,     2.5,       126.5,  127.0,
                                 127.5, 128.0,  255.0,  255.5,  256.0,  257.0,  32767.5, 32768.0,   65504,  65519.99,
                                 65520, 65536,  0x1p24, 0x1p31, 0x1p32, 0x1p53, 0x1p62,  0x1.9p62,  0x1p63, 0x1p64,
                                 1e30,  3.4e38, 1e-8,   6e-8,   3e-8,   1e-45,  1e-300,  1.0000001, 1e300,  16777217};
  for (size_t i = 0, n = corners.size(); i < n; ++i) {
    const double x = corners[i];
    for (const double y : {std::nextafter(x, 1e308), std::nextafter(x, -1e308), -x, -std::nextafter(x, 1e308)})
      corners.push_back(y);
  }
  corners.insert(corners.end(), {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()});
  std::vector<int64_t> integers;
  for (int bit = 0; bit < 64; ++bit)
    for (int64_t delta = -2; delta <= 2; ++delta) {
      const auto x = static_cast<int64_t>((uint64_t{1} << bit) + static_cast<uint64_t>(delta));
      integers.push_back(x);
      integers.push_back(static_cast<int64_t>(0 - static_cast<uint64_t>(x)));
      integers.push_back(static_cast<int64_t>((uint64_t{3} << bit) + static_cast<uint64_t>(delta)));
    }
  for (int bit = 9; bit < 63; ++bit)  // ties of bf16, f16, f32 and f64, and their neighbours
    for (const int significant : {8, 11, 24, 53})
      if (bit >= significant)
        for (int64_t delta = -1; delta <= 1; ++delta)
          for (int64_t odd : {0, 1})
            integers.push_back((int64_t{1} << bit) + (odd << (bit - significant + 1)) +
                               (int64_t{1} << (bit - significant)) + delta);
  for (int i = 0; i < 2000; ++i) integers.push_back(static_cast<int64_t>(rng.bits() >> rng.integer(0, 63)));

  const auto all_of = [](auto zero) {
    std::vector<decltype(zero)> values;
    for (int i = 0; i < (1 << (8 * sizeof zero)); ++i) values.push_back(static_cast<decltype(zero)>(i));
    return values;
  };
  const auto narrowed = [&](auto zero) {
    std::vector<decltype(zero)> values;
    for (const int64_t x : integers) values.push_back(static_cast<decltype(zero)>(x));
    return values;
  };
  std::vector<double> doubles = corners;
  for (int i = 0; i < 5000; ++i) doubles.push_back(std::bit_cast<double>(rng.bits()));
  for (int i = 0; i < 5000; ++i)
    doubles.push_back(std::ldexp(rng.uniform(-2, 2), static_cast<int>(rng.integer(-30, 70))));
  std::vector<float> floats;
  for (const double x : doubles) floats.push_back(static_cast<float>(x));
  for (int i = 0; i < 5000; ++i) floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng.bits())));

  switch (dtype) {
    case DType::F32: return vector_of(dtype, floats);
    case DType::F64: return vector_of(dtype, doubles);
    case DType::F16:
    case DType::BF16: return vector_of(dtype, all_of(uint16_t{}));
    case DType::I8: return vector_of(dtype, all_of(int8_t{}));
    case DType::I16: return vector_of(dtype, all_of(int16_t{}));
    case DType::I32: return vector_of(dtype, narrowed(int32_t{}));
    case DType::I64: return vector_of(dtype, integers);
    case DType::U8: return vector_of(dtype, all_of(uint8_t{}));
    case DType::U16: return vector_of(dtype, all_of(uint16_t{}));
    case DType::U32: return vector_of(dtype, narrowed(uint32_t{}));
    case DType::U64: return vector_of(dtype, narrowed(uint64_t{}));
    case DType::Bool: return vector_of(dtype, std::vector<uint8_t>{0, 1, 2, 128, 255});
    case DType::C64: break;
  }
  std::vector<std::complex<float>> complexes;
  for (size_t i = 0; i < floats.size(); ++i) complexes.emplace_back(floats[i], i % 3 == 0 ? 0.0f : floats[i / 2]);
  return vector_of(dtype, complexes);
}

struct Value {
  long double real = 0;
  float imag = 0;
};

Value read(const Tensor& t, size_t i) {
  switch (t.dtype()) {
    case DType::F32: return {t.values<float>()[i]};
    case DType::F64: return {t.values<double>()[i]};
    case DType::F16: return {f16_to_double(t.values<uint16_t>()[i])};  // convert_test judges these two
    case DType::BF16: return {bf16_to_double(t.values<uint16_t>()[i])};
    case DType::I8: return {static_cast<long double>(t.values<int8_t>()[i])};
    case DType::I16: return {static_cast<long double>(t.values<int16_t>()[i])};
    case DType::I32: return {static_cast<long double>(t.values<int32_t>()[i])};
    case DType::I64: return {static_cast<long double>(t.values<int64_t>()[i])};
    case DType::U8: return {static_cast<long double>(t.values<uint8_t>()[i])};
    case DType::U16: return {static_cast<long double>(t.values<uint16_t>()[i])};
    case DType::U32: return {static_cast<long double>(t.values<uint32_t>()[i])};
    case DType::U64: return {static_cast<long double>(t.values<uint64_t>()[i])};
    case DType::Bool: return {t.values<uint8_t>()[i] != 0 ? 1.0L : 0.0L};
    case DType::C64: break;
  }
  const auto z = t.values<std::complex<float>>()[i];
  return {z.real(), z.imag()};
}

// The nearest 16-bit float, found by searching all of them; a tie goes to the even code.
double nearest_16(long double x, double (*decode)(uint16_t), uint16_t largest) {
  if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  const long double a = std::fabs(x);
  const long double step = static_cast<long double>(decode(largest)) - decode(static_cast<uint16_t>(largest - 1));
  if (a >= decode(largest) + step / 2) return static_cast<double>(std::copysign(HUGE_VALL, x));
  uint16_t low = 0, high = largest;  // decode(low) <= a, and a <= decode(high) or high is the largest
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (decode(middle) <= a ? low : high) = middle;
  }
  const long double down = a - decode(low), up = std::fabs(decode(high) - a);
  const uint16_t code = down < up || (down == up && low % 2 == 0) ? low : high;
  return static_cast<double>(std::copysign(static_cast<long double>(decode(code)), x));
}

struct IntRange {
  int bits;
  long double low, high;
};
IntRange range_of(DType dtype) {
  const int bits = static_cast<int>(8 * size_of(dtype));
  if (is_signed(dtype)) return {bits, -std::ldexp(1.0L, bits - 1), std::ldexp(1.0L, bits - 1) - 1};
  return {bits, 0, std::ldexp(1.0L, bits) - 1};
}

// The low bits of an integer, as the target's sign has it.
long double wrap(long double x, DType to) {
  const IntRange range = range_of(to);
  long double low_bits = std::fmod(x, std::ldexp(1.0L, range.bits));  // exact
  if (low_bits < range.low) low_bits += std::ldexp(1.0L, range.bits);
  if (low_bits > range.high) low_bits -= std::ldexp(1.0L, range.bits);
  return low_bits;
}

Value expected(const Value& x, DType from, DType to) {
  if (is_complex(to)) return is_complex(from) ? x : Value{static_cast<float>(x.real)};
  if (to == DType::Bool) return {x.real != 0 || x.imag != 0 ? 1.0L : 0.0L};
  if (to == DType::F64) return {static_cast<double>(x.real)};
  if (to == DType::F32) return {static_cast<float>(x.real)};
  if (to == DType::F16) return {nearest_16(x.real, f16_to_double, 0x7BFF)};
  if (to == DType::BF16) return {nearest_16(x.real, bf16_to_double, 0x7F7F)};
  if (is_int(from) || from == DType::Bool) return {wrap(x.real, to)};
  if (std::isnan(x.real)) return {0};
  const IntRange range = range_of(to);
  return {std::clamp(std::trunc(x.real), range.low, range.high)};
}

bool same(const Value& a, const Value& b) {
  const auto equal = [](long double x, long double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y && (x != 0 || std::signbit(x) == std::signbit(y));
  };
  return equal(a.real, b.real) && equal(a.imag, b.imag);
}

TEST(Cast, EveryPairOfDTypesFollowsTheTable) {
  for (const DType from : all_dtypes()) {
    const Tensor source = source_of(from);
    for (const DType to : all_dtypes()) {
      const Tensor target = source.cast(to);
      ASSERT_EQ(target.type(), (TensorType{{source.num_elements()}, to}));
      for (size_t i = 0; i < static_cast<size_t>(source.num_elements()); ++i) {
        const Value x = read(source, i), y = read(target, i);
        Value e = expected(x, from, to);
        if (is_int(to) || to == DType::Bool) e.real += 0.0L;  // no negative zero among integers
        ASSERT_TRUE(same(y, e)) << str(from, " -> ", to, " of ", static_cast<double>(x.real), " gives ",
                                       static_cast<double>(y.real), ", expected ", static_cast<double>(e.real));
      }
      if (to != DType::Bool) continue;
      for (const uint8_t b : target.values<uint8_t>()) ASSERT_LE(b, 1);
    }
  }
}

TEST(Cast, RowsOfTheTable) {
  const auto cast = [](DType from, std::vector<double> values, DType to) {
    return Tensor::from_doubles(from, {static_cast<int64_t>(values.size())}, values).cast(to).to_doubles();
  };
  using Doubles = std::vector<double>;
  EXPECT_EQ(cast(DType::F32, {1.9, -1.9, 300, -300, NAN}, DType::I8), (Doubles{1, -1, 127, -128, 0}));
  EXPECT_EQ(cast(DType::F32, {-1, 256, 254.9}, DType::U8), (Doubles{0, 255, 254}));
  EXPECT_EQ(cast(DType::I32, {257, -1, 128}, DType::U8), (Doubles{1, 255, 128}));
  EXPECT_EQ(cast(DType::I32, {200, -129}, DType::I8), (Doubles{-56, 127}));
  EXPECT_EQ(cast(DType::I8, {-1}, DType::U32), (Doubles{4294967295.0}));
  EXPECT_EQ(cast(DType::F64, {NAN, 0, -0.0, 1e-300}, DType::Bool), (Doubles{1, 0, 0, 1}));
  EXPECT_EQ(cast(DType::Bool, {1, 0}, DType::BF16), (Doubles{1, 0}));
  EXPECT_EQ(cast(DType::F64, {1e39, -1e39}, DType::F32), (Doubles{HUGE_VAL, -HUGE_VAL}));
  EXPECT_EQ(cast(DType::F64, {1 + 0x1p-11 + 0x1p-40}, DType::F16), (Doubles{1 + 0x1p-10})) << "rounded twice";
  const Tensor z = Tensor::of<std::complex<float>>(DType::C64, {2}, std::vector<std::complex<float>>{{0, 2}, {3, 4}});
  EXPECT_EQ(z.cast(DType::Bool).to_doubles(), (Doubles{1, 1}));
  EXPECT_EQ(z.cast(DType::I32).to_doubles(), (Doubles{0, 3}));
}

TEST(Cast, OfNoElementsIsEmpty) {
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes()) EXPECT_EQ(Tensor(from, {0, 3}).cast(to), Tensor(to, {0, 3}));
}

TEST(Cast, ElementFunctionsAgreeWithCast) {
  for (const DType dtype : all_dtypes()) {
    SCOPED_TRACE(name(dtype));
    const Tensor source = source_of(dtype);
    const std::vector<double> doubles = source.to_doubles();
    if (dtype != DType::I64) {
      const Tensor as_doubles = source.cast(DType::F64);
      for (size_t i = 0; i < doubles.size(); ++i)
        ASSERT_TRUE(same({doubles[i]}, {as_doubles.values<double>()[i]})) << i;
    }
    const Tensor as_ints = source.cast(DType::I64);
    const LoadIntFn load = load_int_fn(dtype);
    for (int64_t i = 0; i < source.num_elements(); ++i)
      ASSERT_EQ(load(source.bytes().data(), i), as_ints.values<int64_t>()[static_cast<size_t>(i)]) << i;
    const Tensor integers = source_of(DType::I64);
    Tensor stored(dtype, integers.sizes());
    const StoreIntFn store = store_int_fn(dtype);
    for (int64_t i = 0; i < integers.num_elements(); ++i)
      store(stored.mutable_bytes().data(), i, integers.values<int64_t>()[static_cast<size_t>(i)]);
    EXPECT_EQ(stored, integers.cast(dtype));
  }
}

}  // namespace
}  // namespace rlx
