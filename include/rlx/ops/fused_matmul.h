// Matmuls with an epilogue.
#pragma once

#include "rlx/ops/activation.h"

namespace rlx::ops {

struct FusedMatmulBiasActAttrs {
  ActivationKind activation = ActivationKind::kNone;
  static constexpr auto fields = std::tuple{field("activation", &FusedMatmulBiasActAttrs::activation)};
};
extern const Op<FusedMatmulBiasActAttrs> fused_matmul_bias_act;  // x [..., M, K], w [K, N], bias [N]

struct FusedMatmulSplitAttrs {
  std::vector<Dim> widths;  // columns of each result; together N
  static constexpr auto fields = std::tuple{field("widths", &FusedMatmulSplitAttrs::widths)};
};
extern const Op<FusedMatmulSplitAttrs> fused_matmul_split;  // x [..., M, K], w [K, N], bias [N]

}  // namespace rlx::ops
