// The type rule of matmul, for the ops that are a matmul and something more.
#pragma once

#include "rlx/op.h"

namespace rlx::ops {

// Batch dims broadcast, then [M, N]; throws when ranks, dtypes or K do not fit.
TensorType matmul_type(const TensorType& a, const TensorType& b, SymbolTable& symbols);

// Does the contraction of operand 0's last axis mix this axis?
inline bool mixes_last_axis(const Attrs&, int64_t rank, int64_t axis) { return axis == rank - 1; }

}  // namespace rlx::ops
