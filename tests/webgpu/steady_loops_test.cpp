// Loops that the host drives, and steps that it runs between those of the GPU, make nothing in a steady run.
#include <cstring>

#include "backends/reference/evaluate.h"
#include "rlx/custom_op.h"
#include "support/allocations.h"
#include "support/expect_error.h"
#include "support/loop_graphs.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

void expect_results(Executable& exe, const Graph& g, const std::vector<Tensor>& inputs, const NamedTensors& params) {
  const std::vector<Tensor> expected = reference::evaluate(g, inputs, params);
  const std::span<const Tensor> actual = exe.run_slots(inputs);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(near(actual[i], expected[i], kTranscendental)) << i;
}

}  // namespace

using SteadyRunOnWebGpu = WebGpu;

// What is computed of weights was encoded, and had not run.
TEST_F(SteadyRunOnWebGpu, AnErrorOfTheHostInTheFirstRunLosesNoWeights) {
  register_custom_op({"test.no_negative", 1, [](const InferCall& call, auto) { return Types{call.input(0)}; }});
  register_custom_kernel("test.no_negative", "reference", [](const CustomCall& call) {
    const auto x = call.inputs[0].values<const float>();
    if (x[0] < 0) fail(ErrorKind::kRuntime, "It is negative.");
    std::copy(x.begin(), x.end(), call.outputs[0].values<float>().begin());
  });
  Graph g;
  const Value x = g.input("x", kLoopRow), w = g.param("w", kLoopRow);
  g.output(custom_op("test.no_negative", {{x}}) * ops::tanh(w), "y");
  Rng rng(5);
  const NamedTensors params = {{"w", rng.tensor({64})}};
  const Tensor good = Tensor::f32({64}, std::vector<float>(64, 2)), bad = Tensor::f32({64}, std::vector<float>(64, -2));
  Executable exe = compile(g, {.device = "webgpu"});
  exe.set_param("w", params.at("w"));
  EXPECT_TRUE(throws_error([&] { exe.run_slots({{bad}}); }, ErrorKind::kRuntime, "It is negative."));
  expect_results(exe, g, {good}, params);
}

}  // namespace rlx::test
