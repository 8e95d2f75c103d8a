// The nodes without operands. Graph::input, param, constant, state and dim_value build them.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct LeafAttrs {
  std::string name;
  static constexpr auto fields = std::tuple{field("name", &LeafAttrs::name)};
};
struct ConstantAttrs {
  Tensor value;
  static constexpr auto fields = std::tuple{field("value", &ConstantAttrs::value)};
};
struct DimValueAttrs {
  Dim dim;
  static constexpr auto fields = std::tuple{field("dim", &DimValueAttrs::dim)};
};

extern const Op<LeafAttrs> input;
extern const Op<LeafAttrs> param;
extern const Op<LeafAttrs> state;
extern const Op<ConstantAttrs> constant;
extern const Op<DimValueAttrs> dim_value;

}  // namespace rlx::ops
