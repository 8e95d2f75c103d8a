#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct NarrowAttrs {
  int64_t axis = 0;
  Dim start = 0;
  Dim len = 0;
  static constexpr auto fields = std::tuple{field("axis", &NarrowAttrs::axis), field("start", &NarrowAttrs::start),
                                            field("len", &NarrowAttrs::len)};
};
extern const Op<NarrowAttrs> narrow;

}  // namespace rlx::ops
