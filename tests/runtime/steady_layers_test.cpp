// Convolution, pooling, transform and recurrent kernels of the cpu device allocate nothing in a steady run.
#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/allocations.h"
#include "support/random.h"

namespace rlx::test {

// One op per graph: operands from `first_weight` on are weights.
static void expect_no_allocation(const OpDef& op, const std::vector<Tensor>& operands, Attrs attrs,
                                 size_t first_weight) {
  SCOPED_TRACE(op.name);
  Graph g;
  Values values;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = str("x", i);
    if (i < first_weight) inputs.push_back(operands[i]);
    values.push_back(i < first_weight ? g.input(name, operands[i].type()) : g.param(name, operands[i].type()));
  }
  g.output(g.add(op, values, std::move(attrs)), "y");
  Executable exe = compile(g, {.device = "cpu", .threads = 2});
  for (size_t i = first_weight; i < operands.size(); ++i) exe.set_param(str("x", i), operands[i]);
  EXPECT_EQ(exe.plan().steps.back().kernel.substr(0, 3), "cpu") << "the oracle runs it";
  exe.run_slots(inputs);
  exe.run_slots(inputs);
  const auto before = allocations();
  for (int i = 0; i < 3; ++i) exe.run_slots(inputs);
  EXPECT_EQ(allocations(), before);
}

TEST(SteadyRun, LayersAllocateNothing) {
  Rng rng(1);
  const Tensor image = rng.tensor({2, 6, 17, 20}), half = rng.tensor({2, 6, 17, 20}, DType::F16);
  const ops::ConvAttrs conv = {{3, 3}, {2, 2}, {1, 1}, {}, 1};
  for (const size_t first_weight : {1, 2}) {
    expect_no_allocation(ops::conv, {image, rng.tensor({20, 6, 3, 3})}, Attrs(conv), first_weight);
    expect_no_allocation(ops::conv, {half, rng.tensor({20, 6, 3, 3}, DType::F16)}, Attrs(conv), first_weight);
    expect_no_allocation(ops::conv, {image, rng.tensor({6, 1, 3, 3})}, Attrs(ops::ConvAttrs{{3, 3}, {}, {}, {}, 6}),
                         first_weight);
    expect_no_allocation(ops::conv_transpose, {image, rng.tensor({6, 5, 3, 3})},
                         Attrs(ops::ConvTransposeAttrs{{3, 3}, {2, 2}, {1, 1}, {}, {}, 1}), first_weight);
    const std::vector<Tensor> fused = {image, rng.tensor({20, 6, 3, 3}), rng.tensor({20}), rng.tensor({2, 20, 9, 10})};
    expect_no_allocation(ops::fused_conv_bias_act, fused,
                         Attrs(ops::FusedConvBiasActAttrs{{3, 3}, {2, 2}, {1, 1}, {}, 1, ops::ActivationKind::kSilu}),
                         first_weight);
    expect_no_allocation(
        ops::fused_conv_bias_act, {half, rng.tensor({6, 1, 3, 3}, DType::F16), rng.tensor({6}, DType::F16)},
        Attrs(ops::FusedConvBiasActAttrs{{3, 3}, {}, {}, {}, 6, ops::ActivationKind::kRelu}), first_weight);
    const Tensor codes = rng.integers({2, 6, 17, 20}, 0, 255, DType::U8);
    expect_no_allocation(ops::conv_integer, {codes, rng.integers({20, 6, 3, 3}, -128, 127, DType::I8)}, Attrs(conv),
                         first_weight);
    expect_no_allocation(ops::matmul_integer, {codes, rng.integers({20, 33}, -128, 127, DType::I8)}, Attrs(),
                         first_weight);
    expect_no_allocation(ops::lstm, {rng.tensor({2, 5, 7}), rng.tensor({4 * 9 * 7}), rng.tensor({1, 36, 9})},
                         Attrs(ops::LstmAttrs{.hidden_size = 9, .bias = false}), first_weight);
    expect_no_allocation(ops::gru, {rng.tensor({2, 5, 7}), rng.tensor({3 * 9 * 7}), rng.tensor({1, 27, 9})},
                         Attrs(ops::GruAttrs{.hidden_size = 9, .bias = false, .reset_after = false}), first_weight);
  }
  for (const Tensor& x : {image, half})
    expect_no_allocation(ops::quantize_linear, {x, rng.tensor({6})}, Attrs(ops::QuantizeLinearAttrs{}), 2);
  expect_no_allocation(ops::dequantize_linear, {rng.integers({9, 64}, 0, 9, DType::I8), rng.tensor({9, 2})},
                       Attrs(ops::DequantizeLinearAttrs{.block_size = 32}), 2);
  for (const OpDef* op : std::initializer_list<const OpDef*>{&ops::pool_max, &ops::pool_mean})
    for (const Tensor& x : {image, half})
      expect_no_allocation(*op, {x}, Attrs(ops::PoolAttrs{.kernel_size = {3, 3}, .padding = {1, 1}}), 1);
  for (const int64_t n : {30, 37, 4096})
    expect_no_allocation(ops::fft, {rng.tensor({3, 2 * n})}, Attrs(ops::FftAttrs{}), 1);
  expect_no_allocation(ops::selective_scan,
                       {rng.tensor({1, 4, 70}), rng.tensor({1, 4, 70}), rng.tensor({70, 3}), rng.tensor({1, 4, 3}),
                        rng.tensor({1, 4, 3})},
                       Attrs(ops::SelectiveScanAttrs{3}), 5);
  expect_no_allocation(ops::causal_conv, {rng.tensor({1, 4, 70}), rng.tensor({70, 4}), rng.tensor({1, 3, 70})},
                       Attrs(NoAttrs{}), 3);
  expect_no_allocation(ops::gated_delta_net,
                       {rng.tensor({1, 2, 3, 4}), rng.tensor({1, 2, 3, 4}), rng.tensor({1, 2, 3, 4}),
                        rng.tensor({1, 2, 3}), rng.tensor({1, 2, 3})},
                       Attrs(ops::GatedDeltaNetAttrs{4, false}), 5);
}

}  // namespace rlx::test
