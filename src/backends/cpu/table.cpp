#include "backends/cpu/table.h"

#include "backends/cpu/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::cpu {

// The weight, operand 1, is known when compiled.
static bool static_weight(const Signature& s) { return floats<0, 1>(s) && s.is_static(1); }

// clang-format off: a line per kernel
static const host::KernelRow kTable[] = {
    elementwise_row<ops::abs>(),
    {&ops::activation_backward, activation_backward, activation_backward_supports, "blocks",
     activation_backward_scratch},
    elementwise_row<ops::add>(),
    elementwise_row<ops::atan>(),
    {&ops::batch_elementwise_region, batch_elementwise_region, batch_elementwise_region_supports, "blocks",
     batch_elementwise_region_scratch},
    elementwise_row<ops::cast>(),
    elementwise_row<ops::cos>(),
    elementwise_row<ops::div>(),
    {&ops::elementwise_region, elementwise_region, elementwise_region_supports, "blocks", elementwise_region_scratch},
    elementwise_row<ops::eq>(),
    elementwise_row<ops::exp>(),
    {&ops::fused_matmul_bias_act, fused_matmul_bias_act_packed, matmul_packed_supports, "packed", matmul_packed_scratch,
     &kMatmulPacking},
    {&ops::fused_matmul_bias_act, fused_matmul_bias_act, matmul_supports, "plain", matmul_scratch},
    {&ops::fused_swiglu, fused_swiglu, fused_swiglu_supports, "blocks", fused_swiglu_scratch},
    elementwise_row<ops::ge>(),
    elementwise_row<ops::gelu>(),
    elementwise_row<ops::gelu_approx>(),
    {&ops::grouped_matmul, grouped_matmul_packed, matmul_packed_supports, "packed", grouped_matmul_packed_scratch,
     &kMatmulPacking},
    {&ops::grouped_matmul, grouped_matmul, matmul_supports, "plain", grouped_matmul_scratch},
    elementwise_row<ops::gt>(),
    elementwise_row<ops::le>(),
    elementwise_row<ops::log>(),
    elementwise_row<ops::lt>(),
    {&ops::matmul, matmul_packed, matmul_packed_supports, "packed", matmul_packed_scratch, &kMatmulPacking},
    {&ops::matmul, matmul, matmul_supports, "plain", matmul_scratch},
    elementwise_row<ops::max>(),
    elementwise_row<ops::min>(),
    elementwise_row<ops::mul>(),
    elementwise_row<ops::ne>(),
    elementwise_row<ops::neg>(),
    elementwise_row<ops::pow>(),
    elementwise_row<ops::relu>(),
    {&ops::relu_backward, relu_backward, relu_backward_supports, "blocks", relu_backward_scratch},
    elementwise_row<ops::round>(),
    elementwise_row<ops::rsqrt>(),
    elementwise_row<ops::sigmoid>(),
    elementwise_row<ops::silu>(),
    elementwise_row<ops::sin>(),
    {&ops::conv, conv_depthwise, conv_depthwise_supports, "depthwise", conv_depthwise_scratch},
    {&ops::conv, conv_packed, static_weight, "implicit GEMM, packed weight", conv_packed_scratch, &conv_packing},
    {&ops::conv, conv, floats<0, 1>, "implicit GEMM", conv_scratch},
    {&ops::conv2d_backward_input, conv2d_backward_input, floats<0, 1>, "implicit GEMM", conv2d_backward_input_scratch},
    {&ops::conv_transpose2d, conv_transpose2d_packed, static_weight, "implicit GEMM, packed weight", conv_transpose2d_packed_scratch, &conv_transpose2d_packing},
    {&ops::conv_transpose2d, conv_transpose2d, floats<0, 1>, "implicit GEMM", conv_transpose2d_scratch},
    {&ops::fft, fft, fft_supports, "mixed radix", fft_scratch},
    {&ops::gated_delta_net, gated_delta_net, all_small_floats, "columns", gated_delta_net_scratch},
    {&ops::pool_max, pool_max, floats<0>, "separable", pool_scratch},
    {&ops::pool_mean, pool_mean, floats<0>, "separable", pool_scratch},
    {&ops::pool_min, pool_min, floats<0>, "separable", pool_scratch},
    {&ops::pool_prod, pool_prod, floats<0>, "separable", pool_scratch},
    {&ops::pool_sum, pool_sum, floats<0>, "separable", pool_scratch},
    {&ops::selective_scan, selective_scan, all_small_floats, "channels", selective_scan_scratch},
    {&ops::softmax, softmax, floats<0>, "rows", softmax_scratch},
    elementwise_row<ops::sqrt>(),
    elementwise_row<ops::sub>(),
    elementwise_row<ops::tan>(),
    elementwise_row<ops::tanh>(),
    elementwise_row<ops::where>(),
};
// clang-format on

std::span<const host::KernelRow> kernel_table() { return kTable; }

}  // namespace rlx::cpu
