#include "backends/cpu/table.h"

#include "backends/cpu/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::cpu {

// clang-format off: a line per kernel
static const host::KernelRow kTable[] = {
    {&ops::argmax, argmax, floats<0>, "rows", argmax_scratch},
    {&ops::argmin, argmin, floats<0>, "rows", argmax_scratch},
    {&ops::cumsum, cumsum, cumsum_supports, "chains", cumsum_scratch},
    {&ops::cumsum_backward, cumsum_backward, cumsum_supports, "chains", cumsum_scratch},
    {&ops::fused_residual_ln, fused_residual_ln, fused_residual_norm_supports, "rows", fused_residual_norm_scratch},
    {&ops::fused_residual_rms_norm, fused_residual_rms_norm, fused_residual_norm_supports, "rows", fused_residual_norm_scratch},
    {&ops::group_norm, group_norm, floats<0>, "groups", group_norm_scratch},
    {&ops::group_norm_backward, group_norm_backward, floats<0>, "groups", group_norm_backward_scratch},
    {&ops::layer_norm, layer_norm, floats<0>, "rows", layer_norm_scratch},
    {&ops::layer_norm2d, layer_norm2d, floats<0>, "strips", layer_norm2d_scratch},
    {&ops::layer_norm_backward, layer_norm_backward, floats<0>, "rows", layer_norm_backward_scratch},
    {&ops::reduce_max, reduce_max, reduce_supports, "blocks", reduce_scratch},
    {&ops::reduce_mean, reduce_mean, reduce_mean_supports, "blocks", reduce_scratch},
    {&ops::reduce_min, reduce_min, reduce_supports, "blocks", reduce_scratch},
    {&ops::reduce_prod, reduce_prod, reduce_supports, "blocks", reduce_scratch},
    {&ops::reduce_sum, reduce_sum, reduce_supports, "blocks", reduce_scratch},
    {&ops::rms_norm, rms_norm, floats<0>, "rows", rms_norm_scratch},
    {&ops::rms_norm_backward, rms_norm_backward, floats<0>, "rows", rms_norm_backward_scratch},
    {&ops::sample, sample, floats<0>, "rows", sample_scratch},
    {&ops::softmax, softmax, floats<0>, "rows", softmax_scratch},
    {&ops::softmax_cross_entropy_backward, softmax_cross_entropy_backward, floats<0>, "rows", softmax_cross_entropy_scratch},
    {&ops::softmax_cross_entropy_with_logits, softmax_cross_entropy_with_logits, floats<0>, "rows", softmax_cross_entropy_scratch},
    {&ops::topk, topk, floats<0>, "rows", topk_scratch},
};
// clang-format on

std::span<const host::KernelRow> kernel_table() { return kTable; }

}  // namespace rlx::cpu
