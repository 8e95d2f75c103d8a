#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct CastAttrs {
  DType to = DType::F32;
  static constexpr auto fields = std::tuple{field("to", &CastAttrs::to)};
};
extern const Op<CastAttrs> cast;

}  // namespace rlx::ops
