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

TEST(SteadyRun, QuantisedMatmulsAllocateNothing) {
  Rng rng(2);
  const auto bytes = [&](int64_t n) {
    Tensor t(DType::U8, {n});
    for (uint8_t& b : t.mutable_values<uint8_t>()) b = static_cast<uint8_t>(rng.bits() & 0xBF);
    return t;
  };
  const int64_t k = 256, n = 40, m = 5, experts = 3;
  const Scheme scheme = Scheme::kGgufQ4K;
  Graph g;
  const Value x = g.input("x", {{m, k}, DType::F32}), choice = g.input("choice", {{m}, DType::I32});
  const Tensor weight = bytes(weight_bytes(scheme, k, n)), slabs = bytes(experts * weight_bytes(scheme, k, n));
  const Value w = g.param("w", weight.type()), e = g.param("e", slabs.type()), raw = g.input("raw", weight.type());
  g.output(ops::dequant_matmul({x, w}, {.scheme = scheme}), "packed");
  g.output(ops::dequant_matmul({x, raw}, {.scheme = scheme}), "rows");
  g.output(ops::dequant_grouped_matmul(x, e, choice, {.scheme = scheme, .n = n}), "grouped");
  g.output(ops::dequant_gather(e, choice, {.scheme = scheme, .k = k}), "gathered");
  const Value q = ops::quantize(x, {.scales = {0.1f}});
  const Value w8 = g.param("w8", {{k, n}, DType::I8}), bias = g.param("bias", {{n}, DType::I32});
  g.output(ops::q_matmul(q, w8, bias, {.mult = 0.01f}), "q");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  exe.set_param("w", weight);
  exe.set_param("e", slabs);
  exe.set_param("w8", rng.integers({k, n}, -128, 127, DType::I8));
  exe.set_param("bias", rng.integers({n}, -9, 9, DType::I32));
  const std::vector<Tensor> inputs = {rng.tensor({m, k}), Tensor::i32({m}, {2, 0, 2, 1, 2}), weight};
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

}  // namespace rlx::test
