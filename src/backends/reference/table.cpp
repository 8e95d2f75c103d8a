#include "backends/reference/table.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops.h"

namespace rlx::reference {

// One row per op, sorted by the op's name.
static const host::KernelRow kTable[] = {
    {&ops::add, add}, {&ops::div, div}, {&ops::max, max},         {&ops::min, min},
    {&ops::mul, mul}, {&ops::pow, pow}, {&ops::softmax, softmax}, {&ops::sub, sub},
};

std::span<const host::KernelRow> kernel_table() { return kTable; }

host::Kernel find_kernel(const OpDef& op) {
  const auto it =
      std::lower_bound(std::begin(kTable), std::end(kTable), op.name,
                       [](const host::KernelRow& row, std::string_view name) { return row.op->name < name; });
  return it != std::end(kTable) && it->op == &op ? it->kernel : nullptr;
}

}  // namespace rlx::reference
