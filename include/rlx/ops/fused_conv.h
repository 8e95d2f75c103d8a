// A conv with an epilogue.
#pragma once

#include "rlx/ops/activation.h"

namespace rlx::ops {

// The lists are those of conv.h.
struct FusedConvBiasActAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  int64_t groups = 1;
  ActivationKind activation = ActivationKind::kNone;
  static constexpr auto fields = std::tuple{field("kernel_size", &FusedConvBiasActAttrs::kernel_size),
                                            field("stride", &FusedConvBiasActAttrs::stride),
                                            field("padding", &FusedConvBiasActAttrs::padding),
                                            field("dilation", &FusedConvBiasActAttrs::dilation),
                                            field("groups", &FusedConvBiasActAttrs::groups),
                                            field("activation", &FusedConvBiasActAttrs::activation)};
};
// x [N, Cin, …], w [Cout, Cin / groups, …], bias [Cout], residual (optional, of the result's type)
extern const Op<FusedConvBiasActAttrs> fused_conv_bias_act;

}  // namespace rlx::ops
