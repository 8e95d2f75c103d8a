#include "rlx/ops/scatter.h"

#include "ops/infer.h"

namespace rlx::ops {

static void require_reducible(const TensorType& x, ScatterReduction reduction) {
  require(reduction == ScatterReduction::kNone || is_float(x.dtype) || is_int(x.dtype), "Operand dtype (", x.dtype,
          ") cannot be reduced (", name_of(reduction), "); cast it.");
}

static Types infer_elements(const InferCall& call) {
  const TensorType &x = call.input(0), &indices = call.input(1), &updates = call.input(2);
  const auto& attrs = call.attrs<ScatterElementsAttrs>();
  require_index(indices, "Indices");
  require_same_dtype(x, updates);
  require_reducible(x, attrs.reduction);
  require_rank(indices, x.rank(), "Indices");
  const int64_t axis = normalize_axis(attrs.axis, x.rank());
  require_within(indices, x, axis, "Indices");
  require_shape(updates, indices.shape, "Updates");
  return x;
}

static Types infer_nd(const InferCall& call) {
  const TensorType &x = call.input(0), &indices = call.input(1), &updates = call.input(2);
  require_index(indices, "Indices");
  require_same_dtype(x, updates);
  require_reducible(x, call.attrs<ScatterNdAttrs>().reduction);
  require(indices.rank() >= 1, "Indices rank (0) is less than 1.");
  Shape shape;
  for (int64_t a = 0; a + 1 < indices.rank(); ++a) shape.push_back(indices.dim(a));
  for (int64_t a = index_depth(indices, x.rank()); a < x.rank(); ++a) shape.push_back(x.dim(a));
  require_shape(updates, shape, "Updates");
  return x;
}

constinit const Op<ScatterElementsAttrs> scatter_elements{
    {.name = "scatter_elements",
     .category = "Gather and scatter",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_elements,
     .mixes_axis = mixes_attr_axis<ScatterElementsAttrs>,
     .traits = {.in_place = 0b1},
     .doc = "x, where each update replaces (none), is added to (add), … the element at the update's own place, but for "
            "the axis, where its index is. Negative indices count from the end."}};

constinit const Op<ScatterNdAttrs> scatter_nd{
    {.name = "scatter_nd",
     .category = "Gather and scatter",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_nd,
     .mixes_axis = [](const Attrs&, int64_t, int64_t) { return true; },
     .traits = {.in_place = 0b1},
     .doc = "x, where each slice of the updates replaces (none), is added to (add), … the slice at the place that the "
            "last axis of the indices holds. Negative indices count from the end."}};

}  // namespace rlx::ops
