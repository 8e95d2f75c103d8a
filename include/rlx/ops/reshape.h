#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct ReshapeAttrs {
  std::vector<Dim> new_shape;  // at most one -1: the elements that remain. 0 is a literal zero
  static constexpr auto fields = std::tuple{field("new_shape", &ReshapeAttrs::new_shape)};
};
extern const Op<ReshapeAttrs> reshape;

}  // namespace rlx::ops
