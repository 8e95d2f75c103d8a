#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct BitcastAttrs {
  DType to = DType::F32;  // of as many bytes as the operand's
  static constexpr auto fields = std::tuple{field("to", &BitcastAttrs::to)};
};
extern const Op<BitcastAttrs> bitcast;

}  // namespace rlx::ops
