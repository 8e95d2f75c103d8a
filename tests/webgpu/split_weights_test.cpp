// Weights that exceed what one binding shows (spec 40, 3).
#include <algorithm>
#include <optional>

#include "backends/reference/evaluate.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

CompileOptions limited(int64_t binding_bytes) {
  CompileOptions options = webgpu_options(true);
  options.webgpu.max_binding_bytes = binding_bytes;
  return options;
}

// The graph on a device with small bindings, and on the oracle.
void compare(const Graph& g, const NamedTensors& inputs, const NamedTensors& params, int64_t binding_bytes,
             std::optional<Tolerance> tolerance = std::nullopt) {
  Executable small = compile(g, limited(binding_bytes)), oracle = compile(g, {.device = "reference"});
  for (Executable* exe : {&small, &oracle})
    for (const auto& [name, value] : params) exe->set_param(name, value);
  const NamedTensors actual = small.run(inputs), expected = oracle.run(inputs);
  for (const StepInfo& step : small.plan().steps)
    if (step.op == "matmul") {
      EXPECT_TRUE(step.kernel.starts_with("webgpu/")) << step.kernel;
    }
  for (const auto& [name, value] : expected) {
    const Tolerance t = value.dtype() == DType::F16 ? kHalf : value.dtype() == DType::BF16 ? kBFloat : kAccumulation;
    EXPECT_TRUE(near(actual.at(name), value, tolerance.value_or(t))) << name;
  }
}

}  // namespace

using LargeWeightsOnWebGpu = WebGpu;

TEST_F(LargeWeightsOnWebGpu, ProductsAreSummedInParts) {
  Rng rng(3);
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::I32}) {
    SCOPED_TRACE(str(d));
    Graph g;
    const Value x = g.input("x", {{2, 2, 50}, d}), w = g.param("w", {{50, 24}, d});
    g.output(ops::matmul(x, w), "y");
    if (is_float(d)) {
      const Value b = g.param("b", {{24}, d});
      g.output(ops::relu(ops::matmul(x, w) + b), "z");
    }
    NamedTensors params = {{"w", rng.tensor({50, 24}, d)}};
    if (is_float(d)) params["b"] = rng.tensor({24}, d);
    compare(g, {{"x", rng.tensor({2, 2, 50}, d)}}, params, 1024);
  }
}

// Sums of parts are larger than a half can be, and there are so many that one rounding for each would show.
TEST_F(LargeWeightsOnWebGpu, SumsOfPartsAreNoHalves) {
  Rng rng(7);
  for (const int64_t k : {200, 8000}) {
    SCOPED_TRACE(k);
    Graph g;
    const Value x = g.input("x", {{1, k}, DType::F16}), w = g.param("w", {{k, 8}, DType::F16});
    g.output(ops::matmul(x, w), "y");
    NamedTensors inputs = {{"x", rng.tensor({1, k}, DType::F16)}}, params = {{"w", rng.tensor({k, 8}, DType::F16)}};
    if (k == 200) {
      std::vector<double> weights(static_cast<size_t>(8 * k), 20);
      std::fill(weights.begin() + 4 * k, weights.end(), -20);
      inputs["x"] = Tensor::from_doubles(DType::F16, {1, k}, std::vector<double>(static_cast<size_t>(k), 300));
      params["w"] = Tensor::from_doubles(DType::F16, {k, 8}, weights);
    }
    compare(g, inputs, params, 1024, Tolerance{.of_max = 5e-4});  // half a unit in the last place
    Executable exe = compile(g, limited(1024));
    for (const DeviceInfo& d : devices())
      if (d.name == "webgpu" && d.adapters.at(0).uses_f16) {
        EXPECT_EQ(exe.plan().static_bytes, 0);  // halves are read as they are
      }
  }
}

TEST_F(LargeWeightsOnWebGpu, TablesAreReadInParts) {
  Rng rng(4);
  for (const DType d : {DType::F32, DType::F16}) {
    Graph g;
    const Value i = g.input("i", {{2, 7}, DType::I64}), table = g.param("table", {{90, 12}, d});
    g.output(ops::gather(table, i), "y");
    Tensor at = rng.integers({2, 7}, -90, 89, DType::I64);
    at.mutable_values<int64_t>()[3] = 89;
    compare(g, {{"i", at}}, {{"table", rng.tensor({90, 12}, d)}}, 1024);
  }
}

TEST_F(LargeWeightsOnWebGpu, AHeadTiedToItsEmbeddingIsTransposedInParts) {
  Rng rng(5);
  Graph g;
  const Value i = g.input("i", {{6}, DType::I32}), table = g.param("table", {{90, 16}, DType::F32});
  const Value x = ops::tanh(ops::gather(table, i));
  g.output(ops::matmul(x, ops::transpose(table, {.perm = {1, 0}})), "logits");
  compare(g, {{"i", rng.integers({6}, 0, 89)}}, {{"table", rng.tensor({90, 16})}}, 2560);
}

// Broadcast and transposed, as models without weights of their own have them.
TEST_F(LargeWeightsOnWebGpu, ComputedOnesAreComputedOnce) {
  Rng rng(6);
  Graph g;
  const Value x = g.input("x", {{2, 48}, DType::F32}), row = g.param("row", {{1, 48}, DType::F32});
  const Value w = ops::expand(row * row, {.target_shape = {40, 48}});
  g.output(ops::relu(ops::matmul(x, ops::transpose(w, {.perm = {1, 0}}))), "y");
  CompileOptions options = limited(2048);
  options.skip_passes = {"fold_constants"};
  Executable exe = compile(g, options), oracle = compile(g, {.device = "reference"});
  for (int round = 0; round < 2; ++round) {  // new weights are computed again
    const Tensor in = rng.tensor({2, 48}), weight = rng.tensor({1, 48});
    for (Executable* e : {&exe, &oracle}) e->set_param("row", weight);
    EXPECT_TRUE(near(exe.run({{"x", in}}).at("y"), oracle.run({{"x", in}}).at("y"), kAccumulation));
    const int64_t host_steps = exe.stats().device.host_steps;
    exe.run({{"x", in}});
    EXPECT_EQ(exe.stats().device.host_steps, host_steps);
  }
}

TEST_F(LargeWeightsOnWebGpu, WhatCannotBeSplitRunsOnTheHost) {
  Graph g;
  const Value x = g.input("x", {{2, 4}, DType::F32}), w = g.param("w", {{4, 600}, DType::F32});
  g.output(ops::matmul(x, w), "y");  // a row alone is too long
  const Value kernels = g.param("kernels", {{1, 2, 20, 20}, DType::F32});
  g.output(
      ops::conv(g.input("image", {{1, 2, 20, 8}, DType::F32}), kernels, {.kernel_size = {20, 20}, .padding = {0, 8}}),
      "z");
  Executable exe = compile(g, limited(2048)), oracle = compile(g, {.device = "reference"});
  Rng rng(3);
  const NamedTensors inputs = {{"x", rng.tensor({2, 4})}, {"image", rng.tensor({1, 2, 20, 8})}};
  const Tensor weights = rng.tensor({4, 600}), filter = rng.tensor({1, 2, 20, 20});
  for (Executable* e : {&exe, &oracle}) {
    e->set_param("w", weights);
    e->set_param("kernels", filter);
  }
  for (const char* name : {"y", "z"})
    EXPECT_TRUE(near(exe.run(inputs).at(name), oracle.run(inputs).at(name), kAccumulation));
  CompileOptions options = limited(2048);
  options.webgpu.no_host_steps = true;
  EXPECT_ERROR(compile(g, options), kUnsupported, "No kernel of the GPU runs");
}

}  // namespace rlx::test
