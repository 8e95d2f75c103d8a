// Which function of the oracle computes an op.
#pragma once

#include <span>

#include "backends/host/call.h"

namespace rlx::reference {

std::span<const host::KernelRow> kernel_table();   // sorted by op name
const host::KernelRow* find_row(const OpDef& op);  // null: the op is run as its decomposition, or not at all
host::Kernel find_kernel(const OpDef& op);         // the row's; null where there is none

}  // namespace rlx::reference
