// Products that read f16 copies of f32 weights (spec 40, 2): only where that is asked for.
#include "rlx/ops.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

CompileOptions with_f16_weights() {
  CompileOptions options = webgpu_options(true);
  options.webgpu.f16_weights = true;
  return options;
}

bool has_f16() {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && d.available) return d.adapters.at(0).uses_f16;
  return false;
}

int64_t copies(const Executable& exe) {
  int64_t count = 0;
  for (const StepInfo& s : exe.plan().static_steps) count += s.kernel == "webgpu/cast_f32_to_f16" ? 1 : 0;
  return count;
}

}  // namespace

using F16WeightsOnWebGpu = WebGpu;

// Rows for each kernel of products; odd counts, whose last word is half used; fused ops and experts.
TEST_F(F16WeightsOnWebGpu, AreWithinAHalfsRounding) {
  if (!has_f16()) GTEST_SKIP() << "the device has no f16";
  Rng rng(3);
  for (const int64_t rows : {1, 7, 40, 130})
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{33, 17}, {64, 128}}) {
      SCOPED_TRACE(str(rows, " x ", k, " x ", n));
      Graph g;
      const Value x = g.input("x", {{rows, k}, DType::F32}), w = g.param("w", {{k, n}, DType::F32}),
                  b = g.param("b", {{n}, DType::F32}), e = g.param("e", {{3, k, n}, DType::F32}),
                  i = g.input("i", {{rows}, DType::I32}), v = g.input("v", {{k, n}, DType::F32});
      g.output(ops::matmul(x, w), "plain");
      g.output(ops::relu(ops::matmul(x, w) + b), "fused");
      g.output(ops::grouped_matmul(x, e, i), "experts");
      g.output(ops::matmul(x, v), "computed");
      const NamedTensors params = {{"w", rng.tensor({k, n})}, {"b", rng.tensor({n})}, {"e", rng.tensor({3, k, n})}};
      const NamedTensors inputs = {
          {"x", rng.tensor({rows, k})}, {"i", rng.integers({rows}, 0, 2)}, {"v", rng.tensor({k, n})}};
      Executable halves = compile(g, with_f16_weights()), floats = compile(g, webgpu_options()),
                 oracle = compile(g, {.device = "reference"});
      EXPECT_EQ(copies(halves), 2);  // w is shared, v is no weight
      EXPECT_EQ(copies(floats), 0);
      // The oracle with weights that are rounded: the products are as exact as ever.
      for (const auto& [name, value] : params) {
        halves.set_param(name, value);
        floats.set_param(name, value);
        oracle.set_param(name, name == "b" ? value : value.cast(DType::F16).cast(DType::F32));
      }
      const NamedTensors rounded = halves.run(inputs), exact = floats.run(inputs), expected = oracle.run(inputs);
      for (const auto& [name, value] : expected) EXPECT_TRUE(near(rounded.at(name), value, kAccumulation)) << name;
      for (const auto& [name, value] : exact) EXPECT_TRUE(near(rounded.at(name), value, kHalf)) << name;
      EXPECT_EQ(rounded.at("computed"), exact.at("computed"));
    }
}

TEST_F(F16WeightsOnWebGpu, AreNotReadWhereSwitchesSaySo) {
  Rng rng(4);
  Graph g;
  const Value x = g.input("x", {{3, 33}, DType::F32}), w = g.param("w", {{33, 17}, DType::F32});
  g.output(ops::matmul(x, w), "y");
  const Tensor in = rng.tensor({3, 33}), weight = rng.tensor({33, 17});
  const auto run = [&](const CompileOptions& options) {
    Executable exe = compile(g, options);
    EXPECT_EQ(copies(exe), 0);
    exe.set_param("w", weight);
    return exe.run({{"x", in}}).at("y");
  };
  const Tensor expected = run(webgpu_options());
  CompileOptions f32_only = with_f16_weights(), no_mirror = with_f16_weights();
  f32_only.webgpu.matmul_f32_only = true;
  no_mirror.webgpu.f16_mirror = false;
  EXPECT_EQ(run(f32_only), expected);
  EXPECT_EQ(run(no_mirror), expected);
}

// New weights come as new halves.
TEST_F(F16WeightsOnWebGpu, FollowTheirWeights) {
  Graph g;
  const Value x = g.input("x", {{1, 1}, DType::F32}), w = g.param("w", {{1, 3}, DType::F32});
  g.output(ops::matmul(x, w), "y");
  Executable exe = compile(g, with_f16_weights());
  for (const float scale : {1.0f, 2.0f}) {
    exe.set_param("w", Tensor::f32({1, 3}, {scale, 2 * scale, 3 * scale}));
    EXPECT_EQ(exe.run({{"x", Tensor::f32({1, 1}, {2})}}).at("y"),
              Tensor::f32({1, 3}, {2 * scale, 4 * scale, 6 * scale}));
  }
}

}  // namespace rlx::test
