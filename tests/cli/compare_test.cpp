// The judge of rlx check.
#include "compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

namespace rlx::cli {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Difference compare_f32(std::vector<float> actual, std::vector<float> expected) {
  const std::vector<int64_t> sizes = {static_cast<int64_t>(expected.size())};
  return compare(Tensor::f32(sizes, std::move(actual)), Tensor::f32(sizes, std::move(expected)));
}

TEST(Compare, FloatsMayDifferByTheLargestValuesShare) {
  const Difference d = compare_f32({1.0f, 100.005f}, {1.0f, 100.0f});
  EXPECT_NEAR(d.max_abs, 0.005, 1e-5);
  EXPECT_NEAR(d.max_rel, 5e-5, 1e-7);
  EXPECT_TRUE(d.ok());
  EXPECT_TRUE(compare_f32({1.005f, 100.0f}, {1.0f, 100.0f}).ok());
  EXPECT_FALSE(compare_f32({1.02f, 100.0f}, {1.0f, 100.0f}).ok());
  EXPECT_FALSE(compare_f32({1e-30f}, {0.0f}).ok());
  EXPECT_TRUE(compare_f32({}, {}).ok());
}

TEST(Compare, NonFiniteValuesAgreeOnlyWithThemselves) {
  EXPECT_TRUE(compare_f32({NAN, kInf, -kInf, 1}, {NAN, kInf, -kInf, 1}).ok());
  EXPECT_FALSE(compare_f32({1, 1}, {NAN, 1}).ok());
  EXPECT_FALSE(compare_f32({NAN, 1}, {1, 1}).ok());
  EXPECT_FALSE(compare_f32({kInf, 1}, {-kInf, 1}).ok());
  EXPECT_FALSE(compare_f32({1e30f, 1}, {kInf, 1}).ok());
}

TEST(Compare, IntegersAreExact) {
  EXPECT_TRUE(compare(Tensor::i32({2}, {1, 1000000}), Tensor::i32({2}, {1, 1000000})).ok());
  EXPECT_FALSE(compare(Tensor::i32({2}, {1, 1000001}), Tensor::i32({2}, {1, 1000000})).ok());
  // Equal as doubles.
  const int64_t large = std::numeric_limits<int64_t>::max();
  const Difference d = compare(Tensor::i64({1}, {large - 1}), Tensor::i64({1}, {large}));
  EXPECT_EQ(d.max_abs, 1);
  EXPECT_FALSE(d.ok());
  EXPECT_EQ(compare(Tensor::i64({1}, {-3}), Tensor::i64({1}, {5})).max_abs, 8);
}

TEST(Compare, ShortFloatsMayDifferByTwoUnits) {
  const auto f16 = [](double x) { return Tensor::from_doubles(DType::F16, {1}, std::vector<double>{x}); };
  EXPECT_TRUE(compare(f16(1 + 0x1p-10), f16(1)).ok());
  EXPECT_FALSE(compare(f16(1 + 4 * 0x1p-10), f16(1)).ok());
  const auto bf16 = [](double x) { return Tensor::from_doubles(DType::BF16, {1}, std::vector<double>{x}); };
  EXPECT_TRUE(compare(bf16(1 + 0x1p-7), bf16(1)).ok());
  EXPECT_FALSE(compare(bf16(1 + 4 * 0x1p-7), bf16(1)).ok());
}

TEST(Compare, OtherTypesNeverAgree) {
  EXPECT_FALSE(compare(Tensor::f32({1, 2}, {1, 2}), Tensor::f32({2}, {1, 2})).ok());
  EXPECT_FALSE(compare(Tensor::i32({1}, {1}), Tensor::i64({1}, {1})).ok());
}

TEST(Compare, ComplexNumbersByTheirParts) {
  const std::vector<std::complex<float>> a = {{1, 2}}, b = {{1, 2.5f}};
  const auto tensor = [](const auto& v) { return Tensor::of<std::complex<float>>(DType::C64, {1}, v); };
  EXPECT_TRUE(compare(tensor(a), tensor(a)).ok());
  EXPECT_FALSE(compare(tensor(b), tensor(a)).ok());
  EXPECT_NEAR(compare(tensor(b), tensor(a)).max_rel, 0.25, 1e-6);
}

}  // namespace

}  // namespace rlx::cli
