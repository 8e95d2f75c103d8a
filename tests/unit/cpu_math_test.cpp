// The cpu backend's vectorised functions against the C library in double, over all of f32 and on every instruction set
// this machine has: a million bit patterns each, evenly spread, and every special value.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/elementwise/micro.h"
#include "rlx/error.h"
#include "support/random.h"

namespace rlx::test {
namespace {

using cpu::Micro;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class F>
void for_each_target(F f) {
  const int64_t supported = hwy::SupportedTargets() | HWY_SCALAR;
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SCALAR}) {
    if ((supported & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

const std::vector<float>& special_values() {
  static const std::vector<float> values = [] {
    std::vector<float> v;
    for (const float x : {0.0f,        0x1p-149f,   0x1p-140f,  0x1.fffffcp-127f,
                          0x1p-126f,   1e-20f,      1e-5f,      0.24999999f,
                          0.25f,       0.49999997f, 0.5f,       0.625f,
                          0.99999994f, 1.0f,        1.0000001f, 1.5f,
                          2.0f,        2.5f,        3.0f,       3.1415927f,
                          5.0f,        9.0f,        12.0f,      16.5f,
                          44.0f,       86.0f,       88.0f,      88.7f,
                          89.0f,       103.9f,      104.5f,     1000.5f,
                          8388607.5f,  8388608.0f,  8388609.0f, 16777217.0f,
                          4.19e8f,     4.21e8f,     1e10f,      2147483648.0f,
                          1e19f,       1e20f,       1e30f,      0x1.fffffep127f,
                          kInf,        kNaN}) {
      v.push_back(x);
      v.push_back(-x);
    }
    return v;
  }();
  return values;
}

// Every 4096th bit pattern, at a random place between its neighbours.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> v = special_values();
  Rng rng(7);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4096)
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits + static_cast<uint64_t>(rng.integer(0, 4095)))));
  return v;
}

// Compares y with the rounded value of `exact`; names the worst element. Results that are denormal may be flushed.
testing::AssertionResult close(const std::vector<float>& y, const std::vector<double>& exact, double rel, double abs,
                               const std::vector<float>& x) {
  for (size_t i = 0; i < y.size(); ++i) {
    const float e = static_cast<float>(exact[i]);
    if (y[i] == e || (std::isnan(y[i]) && std::isnan(e))) continue;
    const double bound = rel * std::fabs(exact[i]) + abs + 1.2e-38;
    // Rounding up to infinity is an error of one unit in the last place.
    const double actual = std::isinf(y[i]) ? std::copysign(0x1p128, y[i]) : static_cast<double>(y[i]);
    if (!std::isnan(y[i]) && !std::isnan(e) && std::fabs(actual - exact[i]) <= bound) continue;
    return testing::AssertionFailure() << "f(" << x[i] << ") is " << y[i] << ", expected " << exact[i] << " within "
                                       << bound;
  }
  return testing::AssertionSuccess();
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }
double cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
double approx_u(double x) { return 0.7978845608028654 * (x + 0.044715 * x * x * x); }
double sech_squared(double x) { return 4 * sigma(2 * x) * sigma(-2 * x); }

struct Function {
  const char* name;
  Micro micro;
  double (*exact)(double);
  double rel, abs = 0;
};

// rel: of the result; abs only where the result cancels or decays below what f32 arguments can say.
const Function kFunctions[] = {
    {"exp", Micro::kExpF, [](double x) { return std::exp(x); }, 3e-7},
    {"log", Micro::kLogF, [](double x) { return std::log(x); }, 3e-7},
    {"sigmoid", Micro::kSigmoidF, sigma, 4e-7},
    {"tanh", Micro::kTanhF, [](double x) { return std::tanh(x); }, 4e-7},
    {"silu", Micro::kSiluF, [](double x) { return x / (1 + std::exp(-x)); }, 4e-7, 1e-35},
    {"gelu", Micro::kGeluF, [](double x) { return x * cdf(x); }, 1e-5},
    {"gelu_approx", Micro::kGeluApproxF, [](double x) { return x / (1 + std::exp(-2 * approx_u(x))); }, 1e-5, 1e-9},
    {"sin", Micro::kSinF, [](double x) { return std::sin(x); }, 2e-7},
    {"cos", Micro::kCosF, [](double x) { return std::cos(x); }, 2e-7},
    {"tan", Micro::kTanF, [](double x) { return std::tan(x); }, 2e-7},
    {"atan", Micro::kAtanF, [](double x) { return std::atan(x); }, 3e-7},
    {"sqrt", Micro::kSqrtF, [](double x) { return std::sqrt(x); }, 6e-8},
    {"rsqrt", Micro::kRsqrtF, [](double x) { return 1 / std::sqrt(x); }, 2e-7},
    {"erf", Micro::kErfF, [](double x) { return std::erf(x); }, 3e-7},
    {"asin", Micro::kAsinF, [](double x) { return std::asin(x); }, 3e-7},
    {"acos", Micro::kAcosF, [](double x) { return std::acos(x); }, 3e-7},
    {"sinh", Micro::kSinhF, [](double x) { return std::sinh(x); }, 3e-7},
    {"cosh", Micro::kCoshF, [](double x) { return std::cosh(x); }, 3e-7},
    {"asinh", Micro::kAsinhF, [](double x) { return std::asinh(x); }, 3e-7},
    {"acosh", Micro::kAcoshF, [](double x) { return std::acosh(x); }, 3e-7},
    {"atanh", Micro::kAtanhF, [](double x) { return std::atanh(x); }, 3e-7},
    {"floor", Micro::kFloorF, [](double x) { return std::floor(x); }, 0},
    {"ceil", Micro::kCeilF, [](double x) { return std::ceil(x); }, 0},
    {"round", Micro::kRoundF, [](double x) { return std::nearbyint(x); }, 0},
    {"sigmoid'", Micro::kSigmoidSlopeF, [](double x) { return sigma(x) * sigma(-x); }, 1e-6},
    {"tanh'", Micro::kTanhSlopeF, sech_squared, 1e-6},
    {"sqrt'", Micro::kSqrtSlopeF, [](double x) { return x > 0 ? 0.5 / std::sqrt(x) : 0; }, 2e-7},
    {"rsqrt'", Micro::kRsqrtSlopeF, [](double x) { return x > 0 ? -0.5 / (x * std::sqrt(x)) : 0; }, 3e-7},
    {"gelu'", Micro::kGeluSlopeF, [](double x) { return cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); },
     1e-6, 1e-6},
    {"silu'", Micro::kSiluSlopeF, [](double x) { return sigma(x) * (1 + x * sigma(-x)); }, 1e-6, 1e-6},
    {"gelu_approx'", Micro::kGeluApproxSlopeF,
     [](double x) {
       const double u = approx_u(x), du = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
       return sigma(2 * u) + 0.5 * x * sech_squared(u) * du;
     },
     1e-6, 1e-6},
    {"tan'", Micro::kTanSlopeF, [](double x) { return 1 + std::tan(x) * std::tan(x); }, 2e-7},
    {"atan'", Micro::kAtanSlopeF, [](double x) { return 1 / (1 + x * x); }, 3e-7},
};

TEST(CpuMath, FunctionsAreCloseOverAllOfF32) {
  const std::vector<float> x = all_kinds_of_floats();
  std::vector<float> y(x.size());
  for (const Function& f : kFunctions) {
    SCOPED_TRACE(f.name);
    std::vector<double> exact;
    for (const float v : x) exact.push_back(f.exact(static_cast<double>(v)));
    for_each_target([&] {
      const void* operands[] = {x.data(), nullptr, nullptr};
      cpu::step_fn(f.micro)(operands, y.data(), static_cast<int64_t>(x.size()));
      EXPECT_TRUE(close(y, exact, f.rel, f.abs, x));
    });
  }
}

TEST(CpuMath, PowIsCsPow) {
  std::vector<float> a, b;
  const auto add = [&](float base, float exponent) {
    a.push_back(base);
    b.push_back(exponent);
  };
  for (const float base : special_values())
    for (const float exponent : special_values()) add(base, exponent);
  Rng rng(11);
  const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(rng.integer(0, UINT32_MAX))); };
  for (int i = 0; i < 300'000; ++i) {
    add(any(), any());
    add(any(), static_cast<float>(rng.uniform(-4, 4)));
    add(static_cast<float>(rng.uniform(-3, 3)), static_cast<float>(rng.integer(-100, 100)));
  }
  std::vector<double> exact;
  for (size_t i = 0; i < a.size(); ++i) exact.push_back(std::pow(static_cast<double>(a[i]), static_cast<double>(b[i])));
  std::vector<float> y(a.size());
  for_each_target([&] {
    const void* operands[] = {a.data(), b.data(), nullptr};
    cpu::step_fn(Micro::kPowF)(operands, y.data(), static_cast<int64_t>(a.size()));
    EXPECT_TRUE(close(y, exact, 2e-7, 0, a));
  });
}

// Any length, in place, and nothing behind the end is touched.
TEST(CpuMath, StepsHandleEveryTail) {
  for (const Micro micro : {Micro::kAddF, Micro::kExpF, Micro::kSinF, Micro::kPowF, Micro::kLtF, Micro::kAddI,
                            Micro::kToF16, Micro::kWhere})
    for_each_target([&] {
      for (int64_t n = 0; n < 70; ++n) {
        std::vector<float> a(80), b(80), c(80), y(80, -7.0f);
        Rng rng(static_cast<uint64_t>(n));
        for (size_t i = 0; i < a.size(); ++i) {
          a[i] = static_cast<float>(rng.uniform(0.1, 3));
          b[i] = static_cast<float>(rng.uniform(-3, 3));
          c[i] = static_cast<float>(rng.uniform(-3, 3));
        }
        const void* operands[] = {a.data(), b.data(), c.data()};
        cpu::step_fn(micro)(operands, y.data(), n);
        for (size_t i = static_cast<size_t>(n); i < y.size(); ++i) ASSERT_EQ(y[i], -7.0f) << n;
        for (int64_t i = 0; i < n; ++i) {  // one by one is the same
          const void* one[] = {a.data() + i, b.data() + i, c.data() + i};
          float alone = 0;
          cpu::step_fn(micro)(one, &alone, 1);
          ASSERT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(y[static_cast<size_t>(i)])) << n;
        }
        cpu::step_fn(micro)(operands, const_cast<void*>(operands[1]), n);
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(std::bit_cast<uint32_t>(b[static_cast<size_t>(i)]),
                    std::bit_cast<uint32_t>(y[static_cast<size_t>(i)]));
      }
    });
}

}  // namespace
}  // namespace rlx::test
