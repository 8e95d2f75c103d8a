#include "backends/cpu/table.h"

#include "backends/cpu/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::cpu {

// clang-format off: a line per kernel
static const host::KernelRow kTable[] = {
    {&ops::fused_matmul_bias_act, fused_matmul_bias_act_packed, matmul_packed_supports, "packed", matmul_packed_scratch, &kMatmulPacking},
    {&ops::fused_matmul_bias_act, fused_matmul_bias_act, matmul_supports, "plain", matmul_scratch},
    {&ops::grouped_matmul, grouped_matmul_packed, matmul_packed_supports, "packed", grouped_matmul_packed_scratch, &kMatmulPacking},
    {&ops::grouped_matmul, grouped_matmul, matmul_supports, "plain", grouped_matmul_scratch},
    {&ops::matmul, matmul_packed, matmul_packed_supports, "packed", matmul_packed_scratch, &kMatmulPacking},
    {&ops::matmul, matmul, matmul_supports, "plain", matmul_scratch},
    {&ops::softmax, softmax, floats<0>, "rows", softmax_scratch},
};
// clang-format on

std::span<const host::KernelRow> kernel_table() { return kTable; }

}  // namespace rlx::cpu
