#include "backends/reference/table.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::reference {

// One row per op, sorted by the op's name.
// clang-format off: a line per op
static const host::KernelRow kTable[] = {
    {&ops::abs, abs},
    {&ops::activation_backward, activation_backward},
    {&ops::add, add},
    {&ops::argmax, argmax},
    {&ops::argmin, argmin},
    {&ops::atan, atan},
    {&ops::batched_dense_solve, batched_dense_solve},
    {&ops::cast, cast},
    {&ops::complex_norm_sq, complex_norm_sq},
    {&ops::complex_norm_sq_backward, complex_norm_sq_backward},
    {&ops::concat, concat},
    {&ops::conjugate, conjugate},
    {&ops::cos, cos},
    {&ops::cumsum, cumsum},
    {&ops::cumsum_backward, cumsum_backward},
    {&ops::custom, custom},
    {&ops::dense_solve, dense_solve},
    {&ops::dequant_gather, dequant_gather},
    {&ops::dequant_grouped_matmul, dequant_grouped_matmul},
    {&ops::dequant_matmul, dequant_matmul},
    {&ops::dequant_moe_weights, dequant_moe_weights},
    {&ops::dequantize, dequantize},
    {&ops::div, div},
    {&ops::eq, eq},
    {&ops::exp, exp},
    {&ops::expand, expand},
    {&ops::fake_quantize, fake_quantize},
    {&ops::fake_quantize_backward, fake_quantize_backward},
    {&ops::fake_quantize_lsq, fake_quantize_lsq},
    {&ops::fake_quantize_lsq_backward, fake_quantize_lsq_backward},
    {&ops::fft, fft},
    {&ops::gather, gather},
    {&ops::gather_backward, gather_backward},
    {&ops::gaussian_splat_prepare, gaussian_splat_prepare},
    {&ops::gaussian_splat_rasterize, gaussian_splat_rasterize},
    {&ops::gaussian_splat_render_backward, gaussian_splat_render_backward},
    {&ops::ge, ge},
    {&ops::gelu, gelu},
    {&ops::gelu_approx, gelu_approx},
    {&ops::group_norm, group_norm},
    {&ops::group_norm_backward, group_norm_backward},
    {&ops::grouped_matmul, grouped_matmul},
    {&ops::gt, gt},
    {&ops::layer_norm, layer_norm},
    {&ops::layer_norm2d, layer_norm2d},
    {&ops::layer_norm_backward, layer_norm_backward},
    {&ops::le, le},
    {&ops::log, log},
    {&ops::log_mel, log_mel},
    {&ops::log_mel_backward, log_mel_backward},
    {&ops::lt, lt},
    {&ops::matmul, matmul},
    {&ops::max, max},
    {&ops::min, min},
    {&ops::mul, mul},
    {&ops::narrow, narrow},
    {&ops::ne, ne},
    {&ops::neg, neg},
    {&ops::pow, pow},
    {&ops::q_conv2d, q_conv2d},
    {&ops::q_matmul, q_matmul},
    {&ops::quantize, quantize},
    {&ops::reduce_max, reduce_max},
    {&ops::reduce_mean, reduce_mean},
    {&ops::reduce_min, reduce_min},
    {&ops::reduce_prod, reduce_prod},
    {&ops::reduce_sum, reduce_sum},
    {&ops::relu, relu},
    {&ops::relu_backward, relu_backward},
    {&ops::reshape, reshape},
    {&ops::resize_nearest_2x, resize_nearest_2x},
    {&ops::rms_norm, rms_norm},
    {&ops::rms_norm_backward, rms_norm_backward},
    {&ops::round, round},
    {&ops::rsqrt, rsqrt},
    {&ops::sample, sample},
    {&ops::scatter_add, scatter_add},
    {&ops::sigmoid, sigmoid},
    {&ops::silu, silu},
    {&ops::sin, sin},
    {&ops::softmax, softmax},
    {&ops::softmax_cross_entropy_backward, softmax_cross_entropy_backward},
    {&ops::softmax_cross_entropy_with_logits, softmax_cross_entropy_with_logits},
    {&ops::sqrt, sqrt},
    {&ops::sub, sub},
    {&ops::tan, tan},
    {&ops::tanh, tanh},
    {&ops::topk, topk},
    {&ops::transpose, transpose},
    {&ops::welch_peaks, welch_peaks},
    {&ops::where, where},
};
// clang-format on

std::span<const host::KernelRow> kernel_table() { return kTable; }

host::Kernel find_kernel(const OpDef& op) {
  const auto it =
      std::lower_bound(std::begin(kTable), std::end(kTable), op.name,
                       [](const host::KernelRow& row, std::string_view name) { return row.op->name < name; });
  return it != std::end(kTable) && it->op == &op ? it->kernel : nullptr;
}

}  // namespace rlx::reference
