#include "rlx/ops/gather_nd.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_elements(const InferCall& call) {
  const TensorType &x = call.input(0), &indices = call.input(1);
  require_index(indices, "Indices");
  require_rank(indices, x.rank(), "Indices");
  const int64_t axis = normalize_axis(call.attrs<GatherElementsAttrs>().axis, x.rank());
  require_within(indices, x, axis, "Indices");
  return TensorType{indices.shape, x.dtype};
}

static Types infer_nd(const InferCall& call) {
  const TensorType &x = call.input(0), &indices = call.input(1);
  require_index(indices, "Indices");
  const int64_t batch = call.attrs<GatherNdAttrs>().batch_dims;
  require(indices.rank() >= 1, "Indices rank (0) is less than 1.");
  require(batch >= 0 && batch < indices.rank() && batch <= x.rank(), "batch_dims (", batch,
          ") is out of range for ranks (", x.rank(), ", ", indices.rank(), ").");
  for (int64_t a = 0; a < batch; ++a) require_same_dim(x.dim(a), indices.dim(a), "Batch sizes of x and indices");
  const int64_t depth = index_depth(indices, x.rank() - batch);
  TensorType y{{}, x.dtype};
  for (int64_t a = 0; a + 1 < indices.rank(); ++a) y.shape.push_back(indices.dim(a));
  for (int64_t a = batch + depth; a < x.rank(); ++a) y.shape.push_back(x.dim(a));
  return y;
}

static bool mixes_all_but_batch(const Attrs& attrs, int64_t, int64_t axis) {
  return axis >= attrs.as<GatherNdAttrs>().batch_dims;
}

constinit const Op<GatherElementsAttrs> gather_elements{
    {.name = "gather_elements",
     .category = "Gather and scatter",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_elements,
     .mixes_axis = mixes_attr_axis<GatherElementsAttrs>,
     .doc = "For every index the element of x at the index's own place, but for the axis, where the index is. Negative "
            "indices count from the end."}};

constinit const Op<GatherNdAttrs> gather_nd{
    {.name = "gather_nd",
     .category = "Gather and scatter",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_nd,
     .mixes_axis = mixes_all_but_batch,
     .doc =
         "Slices of x at the places that the last axis of the indices holds, behind batch_dims axes that both share. "
         "Negative indices count from the end."}};

}  // namespace rlx::ops
