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

}  // namespace rlx::test
