#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct TopkAttrs {
  int64_t k = 1;
  int64_t axis = -1;
  bool largest = true;
  DType index_dtype = DType::I32;  // or I64
  static constexpr auto fields =
      std::tuple{field("k", &TopkAttrs::k), field("axis", &TopkAttrs::axis), field("largest", &TopkAttrs::largest),
                 field("index_dtype", &TopkAttrs::index_dtype)};
};
extern const Op<TopkAttrs> topk;  // result 0: values, result 1: indices

}  // namespace rlx::ops
