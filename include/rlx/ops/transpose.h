#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct TransposeAttrs {
  std::vector<int64_t> perm;  // result axis i is operand axis perm[i]
  static constexpr auto fields = std::tuple{field("perm", &TransposeAttrs::perm)};
};
extern const Op<TransposeAttrs> transpose;

}  // namespace rlx::ops
