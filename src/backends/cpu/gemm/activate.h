#pragma once

#include <cstdint>

#include "rlx/ops/activation.h"

namespace rlx::cpu::gemm {

// x[i] = act(x[i]), within the tolerances of element-wise ops.
void activate(ops::ActivationKind kind, float* x, int64_t n);

}  // namespace rlx::cpu::gemm
