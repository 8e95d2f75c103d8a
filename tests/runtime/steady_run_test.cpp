// The runtime allocates nothing in a steady run. (Kernels of the oracle may use small temporaries: transpose does.)
#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/allocations.h"
#include "support/random.h"

namespace rlx::test {

TEST(SteadyRun, AllocatesNothing) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(0), 8}, DType::F32}), w = g.param("w", {{8}, DType::F32});
  const Value s = g.state("s", {{8}, DType::F32});
  const Value y = ops::softmax(ops::tanh(x * w) + s);
  g.update(s, s + w);
  g.output(ops::cast(y, {.to = DType::F16}), "y");
  g.output(ops::concat(y, x, {.axis = 1}), "z");
  Executable exe = compile(g, {.device = "reference"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const std::vector<Tensor> inputs = {rng.tensor({4, 8})};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

// The row kernels of the cpu backend take their working memory from the plan, on one thread and on several.
TEST(SteadyRun, RowKernelsAllocateNothing) {
  for (const DType d : {DType::F32, DType::BF16})
    for (const int threads : {1, 3}) {
      Graph g;
      const Value x = g.input("x", {{40, 30, 70}, d}), gamma = g.input("gamma", {{70}, d});
      const Value rows = ops::reshape(x, {.new_shape = {1200, 70}});
      const Value labels = g.input("labels", {{1200}, DType::I32});
      const Value outputs[] = {
          ops::reduce_sum(x, {.axes = {2}}),
          ops::reduce_mean(x, {.axes = {0, 2}}),
          ops::reduce_max(x, {.axes = {0, 1, 2}}),
          ops::softmax(x),
          ops::softmax(x, {.axis = 1}),
          ops::layer_norm(x, gamma, gamma),
          ops::rms_norm(x, gamma),
          ops::fused_residual_ln(x, x, gamma, gamma),
          ops::layer_norm_backward(x, gamma, x),
          ops::softmax_cross_entropy_with_logits(rows, labels),
          ops::cumsum(x),
          ops::cumsum(x, {.axis = 0}),
          ops::argmax(x, {.axis = 1}),
          ops::topk(x, {.k = 5}),
          ops::sample(rows, {.top_p = 0.9f}),
      };
      int i = 0;
      for (const Value& y : outputs) g.output(y, str("y", i++));
      // The transpose that lower_reduce puts before axes 0 and 2 is the oracle's, and the kernel does not need it.
      Executable exe = compile(g, {.device = "cpu", .threads = threads, .skip_passes = {"lower_reduce"}});
      Rng rng(1);
      const std::vector<Tensor> inputs = {rng.tensor({40, 30, 70}, d), rng.tensor({70}, d), Tensor(DType::I32, {1200})};
      exe.run_slots(inputs);
      exe.run_slots(inputs);
      const auto before = allocations();
      for (int n = 0; n < 3; ++n) exe.run_slots(inputs);
      EXPECT_EQ(allocations(), before) << str(d, ", ", threads, " threads");
    }
}

}  // namespace rlx::test
