// Reductions along any set of axes. Each kind is an op of its own.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// Ids as the reference's dumps number them.
enum class ReduceKind : int32_t { kSum, kMean, kMax, kMin, kProd };
constexpr auto names_of(ReduceKind) { return std::array<std::string_view, 5>{"sum", "mean", "max", "min", "prod"}; }

struct ReduceAttrs {
  std::vector<int64_t> axes;  // none: a copy
  bool keep_dim = false;
  static constexpr auto fields =
      std::tuple{field("axes", &ReduceAttrs::axes), field("keep_dim", &ReduceAttrs::keep_dim)};
};

extern const Op<ReduceAttrs> reduce_sum;
extern const Op<ReduceAttrs> reduce_mean;
extern const Op<ReduceAttrs> reduce_max;
extern const Op<ReduceAttrs> reduce_min;
extern const Op<ReduceAttrs> reduce_prod;

const Op<ReduceAttrs>& reduce_op(ReduceKind kind);

}  // namespace rlx::ops
