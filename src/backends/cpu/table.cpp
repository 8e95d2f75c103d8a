#include "backends/cpu/table.h"

#include "backends/cpu/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::cpu {

// clang-format off: a line per kernel
static const host::KernelRow kTable[] = {
    {&ops::softmax, softmax, floats<0>, "rows", softmax_scratch},
};
// clang-format on

std::span<const host::KernelRow> kernel_table() { return kTable; }

}  // namespace rlx::cpu
