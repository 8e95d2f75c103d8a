#pragma once

#include "rlx/ops/activation.h"

namespace rlx::ops {

struct ActivationBackwardAttrs {
  ActivationKind kind = ActivationKind::kRelu;
  static constexpr auto fields = std::tuple{field("kind", &ActivationBackwardAttrs::kind)};
};
extern const Op<ActivationBackwardAttrs> activation_backward;  // (x, dy)
extern const Op<NoAttrs> relu_backward;                        // (x, dy)

}  // namespace rlx::ops
