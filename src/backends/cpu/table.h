#pragma once

#include <span>

#include "backends/host/call.h"

namespace rlx::cpu {

// The fast kernels: sorted by the op's name, and best first where an op has several. What no row supports runs on the
// oracle's kernel.
std::span<const host::KernelRow> kernel_table();

}  // namespace rlx::cpu
