#include "rlx/ops/argmax.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& [axis_attr, keep_dim, index_dtype] = call.attrs<ArgmaxAttrs>();
  const TensorType& x = call.input(0);
  require_ordered(x);
  require_index_dtype(index_dtype);
  const int64_t axis = normalize_axis(axis_attr, x.rank());
  TensorType y{{}, index_dtype};
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != axis)
      y.shape.push_back(x.dim(d));
    else if (keep_dim)
      y.shape.push_back(1);
  }
  return y;
}

static constexpr OpDef arg(std::string_view name, std::string_view doc) {
  return {.name = name,
          .category = "Reductions",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer,
          .mixes_axis = mixes_attr_axis<ArgmaxAttrs>,
          .traits = {.reduction = true},
          .doc = doc};
}

constinit const Op<ArgmaxAttrs> argmax{
    arg("argmax", "Index of the largest element along an axis; the first NaN wins, of equal elements the first.")};
constinit const Op<ArgmaxAttrs> argmin{
    arg("argmin", "Index of the smallest element along an axis; the first NaN wins, of equal elements the first.")};

}  // namespace rlx::ops
