#include "backends/reference/table.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::reference {

// One row per op, sorted by the op's name.
// clang-format off: a line per op
static const host::KernelRow kTable[] = {
    {&ops::add, add},
    {&ops::concat, concat},
    {&ops::div, div},
    {&ops::expand, expand},
    {&ops::max, max},
    {&ops::min, min},
    {&ops::mul, mul},
    {&ops::narrow, narrow},
    {&ops::pow, pow},
    {&ops::reshape, reshape},
    {&ops::resize_nearest_2x, resize_nearest_2x},
    {&ops::softmax, softmax},
    {&ops::sub, sub},
    {&ops::transpose, transpose},
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
