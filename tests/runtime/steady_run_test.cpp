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

// Kernels of the cpu backend that work in scratch memory take it from the plan.
TEST(SteadyRun, AllocatesNothingInCpuAttentionAndDataMovement) {
  Graph g;
  const Value x = g.input("x", {{2, 70, 4, 24}, DType::F16}), past = g.state("past", {{2, 300, 2, 24}, DType::F16});
  const Value len = g.input("len", {{2}, DType::I32}), table = g.param("table", {{300, 12}, DType::F32});
  const ops::AttentionLayout bshd = ops::AttentionLayout::kBshd;
  const Value q = ops::rope(x, table, table, {.head_dim = 24, .layout = bshd});
  const Value k = ops::kv_append(past, ops::narrow(x, {.axis = 2, .start = 1, .len = 2}), len);
  g.update(past, k);
  const auto attend = [&](const Value& queries) {
    return ops::attention(queries, k, k, {.num_heads = 4, .head_dim = 24, .layout = bshd});
  };
  const Value many = attend(q), few = attend(ops::narrow(q, {.axis = 1, .start = 3, .len = 1}));
  const Value y = ops::transpose(ops::concat(many, few, {.axis = 1}), {.perm = {0, 2, 3, 1}});
  g.output(y, "y");
  g.output(ops::scatter_add(ops::gather(y, len), len, {.rows = 9}), "z");
  g.output(ops::expand(ops::reshape(len, {.new_shape = {2, 1}}), {.target_shape = {2, 100}}), "e");
  g.output(ops::resize_nearest_2x(y), "r");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  Rng rng(1);
  exe.set_param("table", rng.tensor({300, 12}));
  const std::vector<Tensor> inputs = {rng.tensor({2, 70, 4, 24}, DType::F16), Tensor::i32({2}, {0, 1})};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

}  // namespace rlx::test
