#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct FusedSwigluAttrs {
  std::optional<DType> cast_to;
  bool gate_first = false;
  static constexpr auto fields =
      std::tuple{field("cast_to", &FusedSwigluAttrs::cast_to), field("gate_first", &FusedSwigluAttrs::gate_first)};
};
extern const Op<FusedSwigluAttrs> fused_swiglu;  // x [..., 2N]

}  // namespace rlx::ops
