// Copies of x with some elements replaced or combined with updates, as in ONNX. Updates are applied in their order: of
// two for the same place the later one wins.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

enum class ScatterReduction : int32_t { kNone, kAdd, kMul, kMax, kMin };
constexpr auto names_of(ScatterReduction) {
  return std::array<std::string_view, 5>{"none", "add", "mul", "max", "min"};
}

struct ScatterElementsAttrs {
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::kNone;
  static constexpr auto fields =
      std::tuple{field("axis", &ScatterElementsAttrs::axis), field("reduction", &ScatterElementsAttrs::reduction)};
};
extern const Op<ScatterElementsAttrs> scatter_elements;  // x, indices, updates

struct ScatterNdAttrs {
  ScatterReduction reduction = ScatterReduction::kNone;
  static constexpr auto fields = std::tuple{field("reduction", &ScatterNdAttrs::reduction)};
};
extern const Op<ScatterNdAttrs> scatter_nd;  // x, indices, updates

}  // namespace rlx::ops
