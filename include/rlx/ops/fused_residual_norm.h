// A residual sum and the norm that follows it. Result 0 is the normalised sum, result 1 the sum itself (spec 20, 3.3).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct FusedResidualLnAttrs {
  bool has_bias = false;
  float eps = 1e-5f;
  static constexpr auto fields =
      std::tuple{field("has_bias", &FusedResidualLnAttrs::has_bias), field("eps", &FusedResidualLnAttrs::eps)};
};
extern const Op<FusedResidualLnAttrs> fused_residual_ln;  // x, residual, [bias], gamma, beta

struct FusedResidualRmsNormAttrs {
  bool has_bias = false;
  float eps = 1e-5f;
  static constexpr auto fields = std::tuple{field("has_bias", &FusedResidualRmsNormAttrs::has_bias),
                                            field("eps", &FusedResidualRmsNormAttrs::eps)};
};
extern const Op<FusedResidualRmsNormAttrs> fused_residual_rms_norm;  // x, residual, [bias], gamma, [beta]

}  // namespace rlx::ops
