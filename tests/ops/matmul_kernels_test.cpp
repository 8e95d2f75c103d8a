// Every row of the table of products on the GPU, whatever the shape: each against the oracle, on sizes that reach
// beyond one tile and end inside one.
#include "backends/webgpu/lowering/matmul_table.h"

#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

using webgpu::ForceMatmul;

bool have_gpu() {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu") return d.available;
  return false;
}

// On the GPU as a test of the kernel named runs it: bounds checked, poisoned; or as users do.
void expect_same(const OpDef& op, const Tensors& inputs, const Attrs& attrs, Tolerance tolerance) {
  CompileOptions checked{.device = "webgpu", .verify_plan = true, .poison = true};
  checked.webgpu.bounds_checks = true;
  const Tensors expected = run_op(op, inputs, attrs);
  for (const bool weights : {false, true}) {
    SCOPED_TRACE(weights ? "trusted, operands are weights" : "bounds checked");
    try {
      const Tensors actual = run_op_on(weights ? CompileOptions{.device = "webgpu"} : checked, op, inputs, attrs,
                                       weights ? ~uint64_t{1} : 0);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(near(actual[i], expected[i], tolerance)) << "result " << i;
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

struct Size {
  int64_t m, k, n;
};

TEST(MatmulKernels, EveryRowOnSizesBesideItsTile) {
  if (!have_gpu()) GTEST_SKIP();
  Rng rng(7);
  for (const auto& v : webgpu::matmul_variants()) {
    const int64_t m = v.tm == 0 ? 11 : v.tm + 2, n = v.tn == 0 ? 136 : v.tn + 4;
    // Rows of fours and of odd lengths: loads of vectors and of elements.
    for (const Size& s : {Size{m, 52, n}, {m + 1, 37, n + 1}, {1, 1, 1}}) {
      SCOPED_TRACE(str(v.name, ": ", s.m, " x ", s.k, " x ", s.n));
      const ForceMatmul force(v.name);
      expect_same(ops::matmul, {rng.tensor({s.m, s.k}, DType::F32), rng.tensor({s.k, s.n}, DType::F32)},
                  Attrs(NoAttrs{}), kAccumulation);
    }
  }
}

TEST(MatmulKernels, EveryRowSplitAlongK) {
  if (!have_gpu()) GTEST_SKIP();
  Rng rng(8);
  for (const auto& v : webgpu::matmul_variants())
    for (const Size& s : {Size{9, 300, 68}, {3, 515, 70}, {66, 130, 7}}) {
      SCOPED_TRACE(str(v.name, ": ", s.m, " x ", s.k, " x ", s.n));
      const ForceMatmul force(v.name, 3);
      expect_same(
          ops::fused_matmul_bias_act,
          {rng.tensor({s.m, s.k}, DType::F32), rng.tensor({s.k, s.n}, DType::F32), rng.tensor({s.n}, DType::F32)},
          Attrs(ops::FusedMatmulBiasActAttrs{.activation = ops::ActivationKind::kRelu}), kAccumulation);
      expect_same(
          ops::fused_matmul_split,
          {rng.tensor({s.m, s.k}, DType::F32), rng.tensor({s.k, s.n}, DType::F32), rng.tensor({s.n}, DType::F32)},
          Attrs(ops::FusedMatmulSplitAttrs{.widths = {4, s.n - 4}}), kAccumulation);
    }
}

// How operands are loaded does not depend on the tile: one of each kernel.
TEST(MatmulKernels, HalfPrecisionAndMixedLoads) {
  if (!have_gpu()) GTEST_SKIP();
  Rng rng(9);
  for (const std::string_view name : {"matmul_gemv", "matmul_32x64"})
    for (const DType d : {DType::F32, DType::F16, DType::BF16})
      for (const Size& s : {Size{34, 24, 20}, {5, 23, 20}, {9, 24, 21}}) {
        SCOPED_TRACE(str(name, ", ", d, ": ", s.m, " x ", s.k, " x ", s.n));
        const ForceMatmul force(name);
        const Tolerance tolerance = d == DType::F32 ? kAccumulation : d == DType::F16 ? kHalf : kBFloat;
        expect_same(ops::matmul, {rng.tensor({s.m, s.k}, d), rng.tensor({s.k, s.n}, d)}, Attrs(NoAttrs{}), tolerance);
        expect_same(ops::matmul, {rng.tensor({2, 1, s.m, s.k}, d), rng.tensor({3, s.k, s.n}, d)}, Attrs(NoAttrs{}),
                    tolerance);
      }
}

// Rows of a grouped product sorted on the GPU: experts with no row, one, and more than a tile; more experts than
// threads.
TEST(MatmulKernels, GroupedRowsInTiles) {
  if (!have_gpu()) GTEST_SKIP();
  Rng rng(10);
  for (const std::string_view name : {"matmul_16x64", "matmul_64x64"})
    for (const auto& [rows, experts] : {std::pair<int64_t, int64_t>{70, 5}, {3, 1}, {1030, 2}, {40, 600}}) {
      SCOPED_TRACE(str(name, ": ", rows, " rows, ", experts, " experts"));
      const ForceMatmul force(name);
      Tensor index = rng.integers({rows}, 0, experts - 1, DType::I32);
      if (experts == 5)
        for (int64_t i = 0; i < 60; ++i) index.mutable_values<int32_t>()[static_cast<size_t>(i)] = i % 20 == 3 ? 4 : 1;
      expect_same(ops::grouped_matmul,
                  {rng.tensor({rows, 12}, DType::F32), rng.tensor({experts, 12, 9}, DType::F32), index},
                  Attrs(NoAttrs{}), kAccumulation);
    }
}

// An index that names no expert gives zeros, by either way.
TEST(MatmulKernels, GroupedRowsWithoutAnExpertAreZero) {
  if (!have_gpu()) GTEST_SKIP();
  Rng rng(11);
  const Tensor x = rng.tensor({4, 8}, DType::F32), w = rng.tensor({2, 8, 4}, DType::F32);
  const Tensor bad = Tensor::i32({4}, {1, -1, 2, 0}), good = Tensor::i32({4}, {1, 0, 0, 0});
  const Tensor expected = run(ops::grouped_matmul, {x, w, good})[0];
  for (const std::string_view name : {"matmul_gemv", "matmul_32x64"}) {
    const ForceMatmul force(name);
    const Tensor y = run_op_on({.device = "webgpu"}, ops::grouped_matmul, {x, w, bad}, Attrs(NoAttrs{}), 0)[0];
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_NEAR(y.at(i), i / 4 == 1 || i / 4 == 2 ? 0 : expected.at(i), 1e-5) << name << ", element " << i;
  }
}

TEST(MatmulKernels, TheLastRowSuitsEveryShape) {
  EXPECT_TRUE(webgpu::matmul_variants().back().suits({}, 0));
  EXPECT_THROW(ForceMatmul("nonsense"), Error);
}

TEST(MatmulShape, FoldsAndMerges) {
  // Leading axes are rows where the weight is shared.
  webgpu::MatmulShape s = webgpu::matmul_shape({2, 3, 4, 5}, {5, 6});
  EXPECT_EQ(s.m, 24);
  EXPECT_TRUE(s.batch.empty());
  // Equal batch axes are one.
  s = webgpu::matmul_shape({2, 3, 4, 5}, {2, 3, 5, 6});
  ASSERT_EQ(s.batch.size(), 1u);
  EXPECT_EQ(s.batch[0].size, 6);
  EXPECT_EQ(s.batch[0].lhs_stride, 20);
  EXPECT_EQ(s.batch[0].rhs_stride, 30);
  // What is shared inside is rows as well; what is shared outside stays.
  s = webgpu::matmul_shape({2, 3, 4, 5}, {2, 1, 5, 6});
  ASSERT_EQ(s.batch.size(), 1u);
  EXPECT_EQ(s.m, 12);
  s = webgpu::matmul_shape({1, 3, 4, 5}, {2, 3, 5, 6});
  ASSERT_EQ(s.batch.size(), 2u);
  EXPECT_EQ(s.batch[0].lhs_stride, 0);
  EXPECT_EQ(s.batch[0].rhs_stride, 90);
}

}  // namespace

}  // namespace rlx::test
