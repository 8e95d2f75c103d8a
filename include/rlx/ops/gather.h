#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct GatherAttrs {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &GatherAttrs::axis)};
};
extern const Op<GatherAttrs> gather;  // table, indices

struct GatherBackwardAttrs {
  int64_t axis = 0;
  std::vector<Dim> table_shape;
  static constexpr auto fields =
      std::tuple{field("axis", &GatherBackwardAttrs::axis), field("table_shape", &GatherBackwardAttrs::table_shape)};
};
extern const Op<GatherBackwardAttrs> gather_backward;  // dy, indices

struct ScatterAddAttrs {
  Dim rows = 0;  // of the result
  static constexpr auto fields = std::tuple{field("rows", &ScatterAddAttrs::rows)};
};
extern const Op<ScatterAddAttrs> scatter_add;  // updates, indices

}  // namespace rlx::ops
