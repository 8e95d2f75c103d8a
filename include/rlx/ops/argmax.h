#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct ArgmaxAttrs {
  int64_t axis = -1;
  bool keep_dim = false;
  DType index_dtype = DType::I32;  // or I64
  static constexpr auto fields =
      std::tuple{field("axis", &ArgmaxAttrs::axis), field("keep_dim", &ArgmaxAttrs::keep_dim),
                 field("index_dtype", &ArgmaxAttrs::index_dtype)};
};
extern const Op<ArgmaxAttrs> argmax;
extern const Op<ArgmaxAttrs> argmin;

}  // namespace rlx::ops
