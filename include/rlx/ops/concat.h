#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct ConcatAttrs {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &ConcatAttrs::axis)};
};
extern const Op<ConcatAttrs> concat;

}  // namespace rlx::ops
