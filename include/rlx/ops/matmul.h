#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> matmul;          // a [..., M, K], b [..., K, N]
extern const Op<NoAttrs> grouped_matmul;  // x [M, K], w [E, K, N], expert_idx [M]

}  // namespace rlx::ops
