#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// What stands beside x: one value, or x itself mirrored at its outermost elements, repeated edges, x over and over.
enum class PadMode : int32_t { kConstant, kReflect, kEdge, kWrap };
constexpr auto names_of(PadMode) { return std::array<std::string_view, 4>{"constant", "reflect", "edge", "wrap"}; }

struct PadAttrs {
  PadMode mode = PadMode::kConstant;
  // Elements added in front of and behind each axis of x. A negative number removes as many; what is left is padded.
  std::vector<int64_t> before, after;
  static constexpr auto fields =
      std::tuple{field("mode", &PadAttrs::mode), field("before", &PadAttrs::before), field("after", &PadAttrs::after)};
};
extern const Op<PadAttrs> pad;  // x, value? (one element, zero when absent; constant mode only)

}  // namespace rlx::ops
