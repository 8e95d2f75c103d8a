#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct SoftmaxAttrs {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &SoftmaxAttrs::axis)};
};
extern const Op<SoftmaxAttrs> softmax;

}  // namespace rlx::ops
