#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> dense_solve;          // A [N, N], b [N] or [N, K]
extern const Op<NoAttrs> batched_dense_solve;  // A [B, N, N], b [B, N] or [B, N, K]

}  // namespace rlx::ops
