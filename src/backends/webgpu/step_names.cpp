#include "backends/webgpu/step_names.h"

#include <algorithm>

#include "rlx/ops.h"

namespace rlx::webgpu {

namespace {

bool is_one_of(const OpDef& op, std::initializer_list<const OpDef*> list) {
  return std::find(list.begin(), list.end(), &op) != list.end();
}

// "conv2d" for images, whose first two axes are samples and channels.
std::string by_rank(std::string_view family, const TensorType& x) { return str(family, x.rank() - 2, "d"); }

std::string elementwise_name(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  if (&op == &ops::cast) {
    const bool to_half = inputs[0].dtype == DType::F32 && attrs.as<ops::CastAttrs>().to == DType::F16;
    return to_half ? "cast_f32_to_f16" : "cast";
  }
  if (is_one_of(op, {&ops::bitcast, &ops::batch_elementwise_region, &ops::elementwise_region, &ops::where}))
    return std::string(op.name);
  if (is_one_of(op, {&ops::eq, &ops::ne, &ops::lt, &ops::le, &ops::gt, &ops::ge})) return "compare";
  return inputs.size() == 1 ? "unary" : "binary";
}

// Without what tells the GPU's form from the host's.
std::string family(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  if (op.traits.elementwise) return elementwise_name(op, attrs, inputs);
  if (is_one_of(op, {&ops::conv, &ops::fused_conv_bias_act})) return by_rank("conv", inputs[0]);
  if (is_one_of(op, {&ops::pool_max, &ops::pool_mean, &ops::pool_min, &ops::pool_prod, &ops::pool_sum}))
    return by_rank("pool", inputs[0]);
  if (is_one_of(op, {&ops::reduce_max, &ops::reduce_mean, &ops::reduce_min, &ops::reduce_prod, &ops::reduce_sum}))
    return "reduce";
  if (&op == &ops::attention_backward) return "attention_bwd";
  if (&op == &ops::fused_matmul_bias_act) return "matmul";
  if (&op == &ops::fused_matmul_split) return "matmul_qkv";
  if (&op == &ops::gather) {
    const int64_t axis = attrs.as<ops::GatherAttrs>().axis;
    return axis == 0 || axis == -inputs[0].rank() ? "gather" : "gather_axis";
  }
  if (&op == &ops::dequant_matmul && is_gguf(attrs.as<ops::DequantMatmulAttrs>().scheme)) return "dequant_matmul_gguf";
  if (&op == &ops::dequant_grouped_matmul && is_gguf(attrs.as<ops::DequantGroupedMatmulAttrs>().scheme))
    return "dequant_grouped_matmul_gguf";
  if (&op == &ops::custom) {
    std::string name = attrs.as<ops::CustomAttrs>().name;  // umap.knn
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
  return std::string(op.name);
}

}  // namespace

std::string step_name(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  return str(family(op, attrs, inputs), is_one_of(op, {&ops::fft, &ops::welch_peaks}) ? "_gpu" : "");
}

std::string host_step_name(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  return str(family(op, attrs, inputs), "_host");
}

}  // namespace rlx::webgpu
