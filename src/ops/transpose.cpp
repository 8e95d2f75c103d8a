#include "rlx/ops/transpose.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  const std::vector<int64_t>& perm = call.attrs<TransposeAttrs>().perm;
  std::vector<bool> seen(static_cast<size_t>(x.rank()), false);
  bool valid = static_cast<int64_t>(perm.size()) == x.rank();
  TensorType y{{}, x.dtype};
  for (size_t i = 0; valid && i < perm.size(); ++i) {
    valid = perm[i] >= 0 && perm[i] < x.rank() && !seen[static_cast<size_t>(perm[i])];
    if (!valid) break;
    seen[static_cast<size_t>(perm[i])] = true;
    y.shape.push_back(x.dim(perm[i]));
  }
  require(valid, "Permutation ", perm, " does not name each axis of rank (", x.rank(), ") once.");
  return y;
}

// Dims of size 1 may move anywhere; the others must keep their order.
static std::optional<ViewOf> view(const InferCall& call) {
  int64_t last = -1;
  for (const int64_t axis : call.attrs<TransposeAttrs>().perm) {
    if (call.input(0).dim(axis).is(1)) continue;
    if (axis < last) return std::nullopt;
    last = axis;
  }
  return ViewOf{};
}

constinit const Op<TransposeAttrs> transpose{{.name = "transpose",
                                              .category = "Shape",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .infer = infer,
                                              .view = view,
                                              .doc = "Axes permuted: result axis i is operand axis perm[i]."}};

}  // namespace rlx::ops
