#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct ExpandAttrs {
  std::vector<Dim> target_shape;  // -1 keeps the operand's size
  static constexpr auto fields = std::tuple{field("target_shape", &ExpandAttrs::target_shape)};
};
extern const Op<ExpandAttrs> expand;

}  // namespace rlx::ops
