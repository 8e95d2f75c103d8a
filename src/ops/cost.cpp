#include "ops/cost.h"

#include <cmath>

#include "rlx/ops.h"

namespace rlx {

namespace {

struct CostCall {
  const Attrs& attrs;
  std::span<const TensorType> inputs, outputs;
  double in(size_t i) const { return static_cast<double>(inputs[i].shape.num_elements()); }
  double out(size_t i = 0) const { return static_cast<double>(outputs[i].shape.num_elements()); }
  double all_outputs() const {
    double n = 0;
    for (size_t i = 0; i < outputs.size(); ++i) n += out(i);
    return n;
  }
  double dim(size_t input, int64_t axis) const {
    const TensorType& t = inputs[input];
    return static_cast<double>(t.dim(axis < 0 ? axis + t.rank() : axis).value());
  }
};

double matmul_flops(const CostCall& c) { return 2 * c.all_outputs() * c.dim(0, -1); }

double conv_flops(const CostCall& c) { return 2 * c.out() * c.in(1) / std::max(1.0, c.dim(1, 0)); }
double conv_transpose_flops(const CostCall& c) { return 2 * c.in(0) * c.in(1) / std::max(1.0, c.dim(1, 0)); }
double attention_flops(const CostCall& c) {
  const auto layout = c.attrs.as<ops::AttentionAttrs>().layout;
  return 4 * c.in(0) * c.dim(1, layout == ops::AttentionLayout::kBhsd ? 2 : 1);
}
double paged_attention_flops(const CostCall& c) { return 4 * c.in(0) * c.dim(3, 1) * c.dim(1, 1); }
double fft_flops(const CostCall& c) {
  const double n = c.dim(0, -1);
  return n > 0 ? 5 * c.in(0) * std::log2(std::max(2.0, n)) : 0;
}
double region_flops(const CostCall& c) {
  return c.out() * static_cast<double>(c.attrs.as<ops::ElementwiseRegionAttrs>().chain.size());
}

struct Row {
  const OpDef* op;
  double (*flops)(const CostCall&);
};
const Row kRows[] = {
    {&ops::attention, attention_flops},
    {&ops::conv, conv_flops},
    {&ops::conv_integer, conv_flops},
    {&ops::conv_transpose, conv_transpose_flops},
    {&ops::dequant_grouped_matmul, matmul_flops},
    {&ops::dequant_matmul, matmul_flops},
    {&ops::elementwise_region, region_flops},
    {&ops::fft, fft_flops},
    {&ops::fused_conv_bias_act, conv_flops},
    {&ops::fused_matmul_bias_act, matmul_flops},
    {&ops::fused_matmul_split, matmul_flops},
    {&ops::grouped_matmul, matmul_flops},
    {&ops::matmul, matmul_flops},
    {&ops::matmul_integer, matmul_flops},
    {&ops::paged_attention, paged_attention_flops},
    {&ops::q_conv2d, conv_flops},
    {&ops::q_matmul, matmul_flops},
};

}  // namespace

Cost cost_of(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
             std::span<const TensorType> outputs) {
  const CostCall call{attrs, inputs, outputs};
  Cost cost;
  for (const auto& types : {inputs, outputs})
    for (const TensorType& t : types) cost.bytes += static_cast<double>(t.size_bytes());
  for (const Row& row : kRows)
    if (row.op == &op) {
      cost.flops = row.flops(call);
      return cost;
    }
  // One operation per element of the larger side.
  for (size_t i = 0; i < inputs.size(); ++i) cost.flops = std::max(cost.flops, call.in(i));
  if (!outputs.empty()) cost.flops = std::max(cost.flops, call.out());
  return cost;
}

}  // namespace rlx
