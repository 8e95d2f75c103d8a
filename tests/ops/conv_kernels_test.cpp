// How convolutions run on a GPU: which kernel takes them, weights in another order only once, operands that are one
// value.
#include "backends/webgpu/lowering/conv_problem.h"
#include "rlx/rlx.h"
#include "support/op_cases.h"

namespace rlx::test {

namespace {

struct Conv {
  std::vector<int64_t> x, w;
  ops::ConvAttrs attrs;
};

webgpu::ConvProblem problem_of(const Conv& c) {
  Graph graph;
  const Value x = graph.input("x", {Shape(std::span<const int64_t>(c.x)), DType::F32});
  const Value w = graph.input("w", {Shape(std::span<const int64_t>(c.w)), DType::F32});
  const Value y = ops::conv(x, w, c.attrs);
  return webgpu::forward_problem(ops::window_of(c.attrs), c.attrs.groups, graph.type(x.id()), graph.type(y.id()));
}

bool has_webgpu() {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && d.available) return true;
  return false;
}

}  // namespace

TEST(ConvKernels, TheTableNamesAKernelForEachShape) {
  const webgpu::Limits limits;
  const auto choose = [&](const Conv& c) { return webgpu::choose_conv(problem_of(c), limits); };
  const auto name = [&](const Conv& c) { return choose(c).variant->name; };
  const Conv small = {{1, 512, 7, 7}, {512, 512, 3, 3}, {.kernel_size = {3, 3}, .padding = {1, 1}}};
  const Conv large = {{32, 64, 56, 56}, {64, 64, 3, 3}, {.kernel_size = {3, 3}, .padding = {1, 1}}};
  EXPECT_EQ(name(large), "gemm_64x128");
  EXPECT_EQ(choose(large).splits, 1);
  EXPECT_EQ(name({{32, 128, 56, 56}, {256, 128, 1, 1}, {.kernel_size = {1, 1}}}), "gemm_128x64");
  EXPECT_EQ(name({{32, 96, 56, 56}, {24, 96, 1, 1}, {.kernel_size = {1, 1}}}), "gemm_32x128");
  EXPECT_GT(choose(small).splits, 8);  // few windows: workgroups share K
  EXPECT_EQ(name({{1, 96, 14, 14}, {96, 1, 3, 3}, {.kernel_size = {3, 3}, .padding = {1, 1}, .groups = 96}}),
            "depthwise");
  EXPECT_EQ(name({{1, 96, 14, 14}, {96, 3, 3, 3}, {.kernel_size = {3, 3}, .padding = {1, 1}, .groups = 32}}), "direct");
  EXPECT_EQ(name({{1, 64, 64, 64}, {3, 64, 3, 3}, {.kernel_size = {3, 3}, .padding = {1, 1}}}), "direct");
  EXPECT_EQ(webgpu::conv_variants().size(), 7u);
}

TEST(ConvKernels, AnUnpaddedPointwiseConvolutionReadsTheImageInItsOrder) {
  EXPECT_TRUE(problem_of({{1, 4, 6, 6}, {8, 4, 1, 1}, {.kernel_size = {1, 1}}}).pointwise());
  EXPECT_FALSE(problem_of({{1, 4, 6, 6}, {8, 4, 1, 1}, {.kernel_size = {1, 1}, .stride = {2, 2}}}).pointwise());
  EXPECT_FALSE(problem_of({{1, 4, 6, 6}, {8, 4, 1, 1}, {.kernel_size = {1, 1}, .padding = {1, 1}}}).pointwise());
}

TEST(ConvKernels, TheResidualMayBeTheInput) {
  if (!has_webgpu()) GTEST_SKIP() << "no adapter";
  Rng rng(3);
  for (const int64_t k : {1, 3})
    for (const DType dtype : {DType::F32, DType::F16}) {
      SCOPED_TRACE(str(k, " ", dtype));
      // x is a value that a kernel has written: it lies in the buffer that the convolution writes, too.
      Graph graph;
      const Value x = ops::relu(graph.input("x", {{1, 32, 4, 6}, dtype}));
      const Value w = graph.param("w", {{32, 32, k, k}, dtype}), b = graph.param("b", {{32}, dtype});
      const ops::FusedConvBiasActAttrs a{
          .kernel_size = {k, k}, .padding = {k / 2, k / 2}, .activation = ops::ActivationKind::kRelu};
      const Value y = ops::fused_conv_bias_act(x, w, b, x, a);
      graph.output(ops::fused_conv_bias_act(y, w, b, y, a), "y");
      NamedTensors given = {{"x", rng.tensor({1, 32, 4, 6}, dtype)}};
      const Tensor weight = rng.tensor({32, 32, k, k}, dtype), bias = rng.tensor({32}, dtype);
      Tensors results;
      for (const char* device : {"reference", "webgpu"}) {
        Executable exe = compile(graph, {.device = device});
        exe.set_param("w", weight);
        exe.set_param("b", bias);
        exe.run(given);
        const int64_t before = exe.stats().device.dispatches;
        results.push_back(exe.run(given).at("y"));
        if (results.size() < 2) continue;
        EXPECT_EQ(exe.stats().device.host_steps, 0);
        // Nothing but the relu and the convolutions, in parts where K is long: the weight has been packed before.
        EXPECT_EQ(exe.stats().device.dispatches - before, k == 1 ? 3 : 5);
      }
      EXPECT_TRUE(near(results[1], results[0], dtype == DType::F16 ? Tolerance{.of_max = 4e-3} : kAccumulation));
    }
}

// Weights that a run computes are packed in every run.
TEST(ConvKernels, AWeightThatChangesIsPackedAgain) {
  if (!has_webgpu()) GTEST_SKIP() << "no adapter";
  Rng rng(4);
  Graph graph;
  const Value x = graph.input("x", {{1, 20, 6, 5}, DType::F32}), w = graph.input("w", {{24, 20, 3, 3}, DType::F32});
  graph.output(ops::conv(x, ops::relu(w), {.kernel_size = {3, 3}, .padding = {1, 1}}), "y");
  Executable gpu = compile(graph, {.device = "webgpu"}), oracle = compile(graph, {.device = "reference"});
  for (int i = 0; i < 2; ++i) {
    const NamedTensors given = {{"x", rng.tensor({1, 20, 6, 5}, DType::F32)},
                                {"w", rng.tensor({24, 20, 3, 3}, DType::F32)}};
    EXPECT_TRUE(near(gpu.run(given).at("y"), oracle.run(given).at("y"), kAccumulation));
  }
  EXPECT_EQ(gpu.stats().device.host_steps, 0);
}

}  // namespace rlx::test
