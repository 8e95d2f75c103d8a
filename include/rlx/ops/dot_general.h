#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// Axes of the two operands, paired in order. Negative ones count from the end.
struct DotGeneralAttrs {
  std::vector<int64_t> lhs_contracting, rhs_contracting;
  std::vector<int64_t> lhs_batch, rhs_batch;
  static constexpr auto fields =
      std::tuple{field("lhs_contracting", &DotGeneralAttrs::lhs_contracting),
                 field("rhs_contracting", &DotGeneralAttrs::rhs_contracting),
                 field("lhs_batch", &DotGeneralAttrs::lhs_batch), field("rhs_batch", &DotGeneralAttrs::rhs_batch)};
};
extern const Op<DotGeneralAttrs> dot_general;

}  // namespace rlx::ops
