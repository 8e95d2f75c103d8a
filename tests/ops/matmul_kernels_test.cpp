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
void expect_same(const OpDef& op, const Tensors& inputs, const Attrs& attrs, Tolerance tolerance,
                 int64_t max_groups_per_row = 0) {
  CompileOptions checked{.device = "webgpu", .verify_plan = true, .poison = true}, trusted{.device = "webgpu"};
  checked.webgpu.bounds_checks = true;
  checked.webgpu.max_groups_per_row = trusted.webgpu.max_groups_per_row = max_groups_per_row;
  const Tensors expected = run_op(op, inputs, attrs);
  for (const bool weights : {false, true}) {
    SCOPED_TRACE(weights ? "trusted, operands are weights" : "bounds checked");
    try {
      const Tensors actual = run_op_on(weights ? trusted : checked, op, inputs, attrs, weights ? ~uint64_t{1} : 0);
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
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
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

// Columns whose tiles do not fit an axis of the grid: 65,535 of a GPU, three here.
TEST(MatmulKernels, MoreTilesOfColumnsThanAGridHasPlaces) {
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
  Rng rng(9);
  for (const auto& v : webgpu::matmul_variants()) {
    SCOPED_TRACE(v.name);
    const int64_t m = v.tm == 0 ? 11 : v.tm + 2, n = v.tn == 0 ? 530 : 4 * v.tn + 6;
    const ForceMatmul force(v.name);
    const Tensor w = rng.tensor({7, n}, DType::F32);
    expect_same(ops::matmul, {rng.tensor({m, 7}, DType::F32), w}, Attrs(NoAttrs{}), kAccumulation, 3);
    if (v.name != "matmul_gemv" && v.name != "matmul_16x64") continue;  // all tiles are of one text
    expect_same(ops::matmul, {rng.tensor({3, m, 7}, DType::F32), rng.tensor({3, 7, n}, DType::F32)}, Attrs(NoAttrs{}),
                kAccumulation, 3);
    expect_same(ops::fused_matmul_split, {rng.tensor({m, 7}, DType::F32), w, rng.tensor({n}, DType::F32)},
                Attrs(ops::FusedMatmulSplitAttrs{.widths = {n - 20, 20}}), kAccumulation, 3);
    expect_same(
        ops::grouped_matmul,
        {rng.tensor({40, 7}, DType::F32), rng.tensor({2, 7, n}, DType::F32), rng.integers({40}, 0, 1, DType::I32)},
        Attrs(NoAttrs{}), kAccumulation, 3);
  }
  expect_same(ops::matmul, {rng.integers({2, 18, 7}, -9, 9, DType::I32), rng.integers({2, 7, 70}, -9, 9, DType::I32)},
              Attrs(NoAttrs{}), kExact, 3);
}

TEST(MatmulKernels, EveryRowSplitAlongK) {
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
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
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
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
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
  Rng rng(10);
  for (const std::string_view name : {"matmul_16x64", "matmul_64x64"})
    for (const auto& [rows, experts] : {std::pair<int64_t, int64_t>{70, 5}, {3, 1}, {1030, 2}, {40, 600}, {40001, 3}}) {
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
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
  Rng rng(11);
  const Tensor x = rng.tensor({4, 8}, DType::F32), w = rng.tensor({2, 8, 4}, DType::F32);
  const Tensor bad = Tensor::i32({4}, {1, -1, 2, 0}), good = Tensor::i32({4}, {1, 0, 0, 0});
  const Tensor expected = run(ops::grouped_matmul, {x, w, good})[0];
  for (const std::string_view name : {"matmul_gemv", "matmul_32x64"}) {
    const ForceMatmul force(name);
    const Tensor y = run_op_on({.device = "webgpu", .webgpu = {.check_indices = false}}, ops::grouped_matmul,
                               {x, w, bad}, Attrs(NoAttrs{}), 0)[0];
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_NEAR(y.at(i), i / 4 == 1 || i / 4 == 2 ? 0 : expected.at(i), 1e-5) << name << ", element " << i;
  }
}

// No product falls to the host, and the step is called what its row is called.
TEST(MatmulKernels, RunOnTheGpu) {
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    Graph g;
    const auto weight = [&](const std::string& name, Shape shape) { return g.param(name, {std::move(shape), d}); };
    const Value x = g.input("x", {{40, 24}, d});
    g.output(ops::fused_matmul_bias_act(x, weight("w", {24, 80}), weight("b", {80}),
                                        {.activation = ops::ActivationKind::kGelu}),
             "y");
    const Value parts = ops::fused_matmul_split(x, weight("v", {24, 72}), weight("c", {72}), {.widths = {40, 16, 16}});
    for (int64_t i = 0; i < 3; ++i) g.output(parts.result(i), str("part", i));
    g.output(ops::grouped_matmul(x, weight("e", {3, 24, 8}), g.input("index", {{40}, DType::I32})), "z");
    const Executable exe = compile(std::move(g), {.device = "webgpu"});
    std::vector<std::string> products;
    for (const StepInfo& step : exe.plan().steps) {
      EXPECT_TRUE(step.kernel.starts_with("webgpu/")) << step.op << " runs as " << step.kernel;
      if (step.kernel.starts_with("webgpu/matmul")) products.push_back(step.kernel);
    }
    EXPECT_EQ(products,
              (std::vector<std::string>{"webgpu/matmul_16x64", "webgpu/matmul_16x64", "webgpu/matmul_16x64"}));
  }
}

// Operands that are views of one value share a binding, where vectors do not suit all of them.
TEST(MatmulKernels, OperandsOfOneValue) {
  if (!have_gpu()) GTEST_SKIP() << "there is no adapter";
  Rng rng(13);
  Graph g;
  const Value x = ops::relu(g.input("x", {{9, 12}, DType::F32}));
  const Value w = ops::reshape(x, {.new_shape = {12, 9}});
  g.output(ops::matmul(x, w), "y");
  const Value bias = ops::reshape(ops::narrow(w, {.axis = 0, .start = 1, .len = 1}), {.new_shape = {9}});
  g.output(ops::fused_matmul_bias_act(x, w, bias, {}), "z");
  const NamedTensors inputs{{"x", rng.tensor({9, 12}, DType::F32)}};
  const NamedTensors expected = compile(g, {.device = "reference"}).run(inputs),
                     actual = compile(g, {.device = "webgpu"}).run(inputs);
  for (const char* name : {"y", "z"}) EXPECT_TRUE(near(actual.at(name), expected.at(name), kAccumulation)) << name;
}

TEST(MatmulKernels, AreChosenByShape) {
  const auto chosen = [](int64_t m, int64_t k, int64_t n) {
    const webgpu::MatmulChoice c = webgpu::choose_matmul({.m = m, .n = n, .k = k});
    return str(c.variant->name, c.splits > 1 ? " in parts" : "");
  };
  EXPECT_EQ(chosen(4096, 4096, 4096), "matmul_64x128");
  EXPECT_EQ(chosen(4096, 768, 768), "matmul_64x128");
  EXPECT_EQ(chosen(1, 4096, 4096), "matmul_gemv");
  EXPECT_EQ(chosen(8, 4096, 4096), "matmul_gemv");
  EXPECT_EQ(chosen(12, 64, 64), "matmul_16x64");
  EXPECT_EQ(chosen(3, 3, 3), "matmul_small");
  // Few tiles and a long k: in parts. Many: whole.
  EXPECT_TRUE(chosen(64, 4096, 256).ends_with(" in parts")) << chosen(64, 4096, 256);
  EXPECT_FALSE(chosen(64, 300, 4096).ends_with(" in parts")) << chosen(64, 300, 4096);
}

TEST(MatmulKernels, NeedNoMoreThanEveryDeviceHas) {
  for (const auto& v : webgpu::matmul_variants()) {
    EXPECT_LE(16 * v.tk * (v.tm + v.tn) / 4, 16384u) << v.name;
    if (v.tk > 0) {
      EXPECT_LE(v.tm / v.rm * (v.tn / v.rn), 256u) << v.name;
    }
  }
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
