#include "passes/conv_terms.h"

#include <algorithm>

#include "passes/match.h"

namespace rlx::passes {

PerChannel per_channel(const TensorType& t, const TensorType& y) {
  const int64_t rank = y.rank();
  if (rank < 2 || t.dtype != y.dtype || t.rank() > rank) return PerChannel::kNo;
  if (std::all_of(t.shape.begin(), t.shape.end(), [](const Dim& d) { return d.is(1); }))
    return y.dim(1).is(1) ? PerChannel::kEach : PerChannel::kOne;
  const int64_t channels = t.rank() - (rank - 1);  // its axis of y's axis 1
  if (channels < 0 || t.dim(channels) != y.dim(1)) return PerChannel::kNo;
  for (int64_t i = 0; i < t.rank(); ++i)
    if (i != channels && !t.dim(i).is(1)) return PerChannel::kNo;
  return PerChannel::kEach;
}

Value as_vector(const Value& v, PerChannel kind) {
  Dim size = 1;
  if (kind == PerChannel::kEach)
    for (const Dim& d : v.shape())
      if (!d.is(1)) size = d;
  return reshaped(v, {size});
}

}  // namespace rlx::passes
