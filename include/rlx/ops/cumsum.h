#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct CumsumAttrs {
  int64_t axis = -1;
  bool exclusive = false;  // element i is the sum before i: the first is 0
  bool reverse = false;    // runs from the last element
  static constexpr auto fields =
      std::tuple{field("axis", &CumsumAttrs::axis), field("exclusive", &CumsumAttrs::exclusive),
                 field("reverse", &CumsumAttrs::reverse)};
};
extern const Op<CumsumAttrs> cumsum;
extern const Op<CumsumAttrs> cumprod;          // the same with products: an exclusive one begins with 1
extern const Op<CumsumAttrs> cumsum_backward;  // dy, with the forward op's attributes

}  // namespace rlx::ops
