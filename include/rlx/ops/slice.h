#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// One entry per axis of x. Nothing is clamped: every element must be there.
struct SliceAttrs {
  std::vector<Dim> start;
  std::vector<int64_t> step;  // not 0; negative steps walk backwards from start
  std::vector<Dim> len;
  static constexpr auto fields =
      std::tuple{field("start", &SliceAttrs::start), field("step", &SliceAttrs::step), field("len", &SliceAttrs::len)};
};
extern const Op<SliceAttrs> slice;

}  // namespace rlx::ops
