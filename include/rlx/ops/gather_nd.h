// Gathers with an index per element (gather_elements) or per slice (gather_nd), as in ONNX.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct GatherElementsAttrs {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &GatherElementsAttrs::axis)};
};
extern const Op<GatherElementsAttrs> gather_elements;  // x, indices

struct GatherNdAttrs {
  int64_t batch_dims = 0;
  static constexpr auto fields = std::tuple{field("batch_dims", &GatherNdAttrs::batch_dims)};
};
extern const Op<GatherNdAttrs> gather_nd;  // x, indices

}  // namespace rlx::ops
