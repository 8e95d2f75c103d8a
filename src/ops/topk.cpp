#include "rlx/ops/topk.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& [k, axis_attr, largest, index_dtype] = call.attrs<TopkAttrs>();
  TensorType values = call.input(0);
  require_ordered(values);
  require_index_dtype(index_dtype);
  const int64_t axis = normalize_axis(axis_attr, values.rank());
  const Dim& size = values.dim(axis);
  require(k >= 0 && (!size.is_static() || k <= size.value()), "K (", k, ") is not between 0 and the size (", size,
          ") of axis ", axis, ".");
  values.shape[axis] = k;
  return {values, TensorType{values.shape, index_dtype}};
}

constinit const Op<TopkAttrs> topk{
    {.name = "topk",
     .category = "Reductions",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = mixes_attr_axis<TopkAttrs>,
     .traits = {.reduction = true},
     .doc = "The k largest (or smallest) elements along an axis in order, and their indices. NaN counts as largest; of "
            "equal elements the smaller index comes first."}};

}  // namespace rlx::ops
