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

// On the oracle and on the GPU, whose grids have at most so many workgroups a row; 0: as many as it can.
void expect_same(const OpDef& op, const Tensors& inputs, const Attrs& attrs, int64_t max_groups_per_row,
                 int64_t max_binding_bytes = 0) {
  const Tensors expected = run_op(op, inputs, attrs);
  for (const bool checks : {true, false}) {
    CompileOptions options{.device = "webgpu", .verify_plan = true, .poison = checks};
    options.webgpu.bounds_checks = checks;
    options.webgpu.no_host_steps = true;
    options.webgpu.max_groups_per_row = max_groups_per_row;
    options.webgpu.max_binding_bytes = max_binding_bytes;
    try {
      EXPECT_TRUE(near(run_op_on(options, op, inputs, attrs, checks ? 0 : 2)[0], expected[0], kAccumulation));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace

// Groups of few channels, which tiles of the packed weight would not fill; and a sum whose parts would be too many.
TEST(ConvKernels, ABindingHoldsWhatTheKernelMakes) {
  if (!has_webgpu()) GTEST_SKIP() << "there is no adapter";
  Rng rng(12);
  expect_same(ops::conv, {rng.tensor({1, 256, 1, 8}, DType::F32), rng.tensor({48, 64, 1, 1}, DType::F32)},
              Attrs(ops::ConvAttrs{.kernel_size = {1, 1}, .groups = 4}), 0, 16384);
  expect_same(ops::conv, {rng.tensor({1, 512, 4, 4}, DType::F32), rng.tensor({32, 512, 1, 1}, DType::F32)},
              Attrs(ops::ConvAttrs{.kernel_size = {1, 1}}), 0, 66000);
}

TEST(ConvKernels, TheTableNamesAKernelForEachShape) {
  const webgpu::Limits limits{.max_buffer_bytes = 1 << 30, .max_binding_bytes = 1 << 30};
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
  EXPECT_EQ(name({{1, 96, 1, 9, 9}, {96, 1, 1, 3, 3}, {.kernel_size = {1, 3, 3}, .groups = 96}}), "depthwise");
  EXPECT_EQ(name({{1, 96, 1, 9, 9}, {96, 1, 3, 3, 3}, {.kernel_size = {3, 3, 3}, .padding = {1, 1, 1}, .groups = 96}}),
            "direct");
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

// More blocks of channels, phases and windows than an axis of the grid holds: 65,535 of a GPU, three here.
TEST(ConvKernels, GridsGoOnAlongTheNextAxis) {
  if (!has_webgpu()) GTEST_SKIP() << "no adapter";
  Rng rng(5);
  const auto random = [&](std::vector<int64_t> sizes) { return rng.tensor(std::move(sizes), DType::F32); };
  for (const int64_t groups : {1, 4}) {  // blocks of one group alone, and of several
    SCOPED_TRACE(str(groups, " groups"));
    const int64_t cin = 2 * groups, cout = 11 * groups;
    expect_same(ops::conv, {random({2, cin, 11, 12}), random({cout, 2, 3, 3})},
                Attrs(ops::ConvAttrs{.kernel_size = {3, 3}, .padding = {1, 1}, .groups = groups}), 3);
    expect_same(ops::conv_transpose, {random({2, cin, 10, 11}), random({cin, 11, 3, 3})},
                Attrs(ops::ConvTransposeAttrs{.kernel_size = {3, 3}, .stride = {2, 3}, .groups = groups}), 3);
    // Two tiles of k, two of channels, several splits.
    const std::vector<Dim> weight = {70 * groups, 8, 3, 3};
    expect_same(ops::conv2d_backward_weight, {random({3, 8 * groups, 9, 12}), random({3, 70 * groups, 9, 12})},
                Attrs(ops::Conv2dBackwardWeightAttrs{
                    .kernel_size = {3, 3}, .padding = {1, 1}, .groups = groups, .weight_shape = weight}),
                3);
  }
}

TEST(ConvKernels, MoreGroupsThanAnAxisHolds) {
  if (!has_webgpu()) GTEST_SKIP() << "no adapter";
  Rng rng(6);
  const int64_t groups = 70000;
  expect_same(ops::conv, {rng.tensor({1, 2 * groups, 1, 2}), rng.tensor({groups, 2, 1, 1})},
              Attrs(ops::ConvAttrs{.kernel_size = {1, 1}, .groups = groups}), 0);
  // Slow on a software adapter, so that it is not run: the test above has its results.
  Graph graph;
  const TensorType rows{{1, groups, 1, 2}, DType::F32};
  const Value x = graph.input("x", rows), dy = graph.input("dy", rows);
  graph.output(
      ops::conv2d_backward_weight(x, dy, {.kernel_size = {1, 1}, .groups = groups, .weight_shape = {groups, 1, 1, 1}}),
      "dw");
  EXPECT_NO_THROW(compile(graph, {.device = "webgpu"}));
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
