#include <algorithm>

#include "rlx/ops.h"

namespace rlx {

// Sorted by name; a test checks that.
// clang-format off: a line per op
static constexpr const OpDef* kOps[] = {
    &ops::abs,
    &ops::activation_backward,
    &ops::add,
    &ops::argmax,
    &ops::argmin,
    &ops::atan,
    &ops::batch_elementwise_region,
    &ops::batched_dense_solve,
    &ops::cast,
    &ops::complex_norm_sq,
    &ops::complex_norm_sq_backward,
    &ops::concat,
    &ops::conjugate,
    &ops::constant,
    &ops::cos,
    &ops::dense_solve,
    &ops::cumsum,
    &ops::cumsum_backward,
    &ops::dim_value,
    &ops::div,
    &ops::dot_general,
    &ops::elementwise_region,
    &ops::eq,
    &ops::exp,
    &ops::expand,
    &ops::fused_matmul_bias_act,
    &ops::fused_matmul_split,
    &ops::fused_swiglu,
    &ops::ge,
    &ops::gelu,
    &ops::gelu_approx,
    &ops::grouped_matmul,
    &ops::gt,
    &ops::input,
    &ops::le,
    &ops::log,
    &ops::lora_matmul,
    &ops::lt,
    &ops::matmul,
    &ops::max,
    &ops::min,
    &ops::mul,
    &ops::narrow,
    &ops::ne,
    &ops::neg,
    &ops::param,
    &ops::pow,
    &ops::reduce_max,
    &ops::reduce_mean,
    &ops::reduce_min,
    &ops::reduce_prod,
    &ops::reduce_sum,
    &ops::relu,
    &ops::relu_backward,
    &ops::reshape,
    &ops::resize_nearest_2x,
    &ops::round,
    &ops::rsqrt,
    &ops::sigmoid,
    &ops::silu,
    &ops::sin,
    &ops::softmax,
    &ops::sqrt,
    &ops::state,
    &ops::sub,
    &ops::tan,
    &ops::tanh,
    &ops::topk,
    &ops::transpose,
    &ops::where,
};
// clang-format on

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  const auto it = std::lower_bound(std::begin(kOps), std::end(kOps), name,
                                   [](const OpDef* op, std::string_view n) { return op->name < n; });
  return it != std::end(kOps) && (*it)->name == name ? *it : nullptr;
}

}  // namespace rlx
