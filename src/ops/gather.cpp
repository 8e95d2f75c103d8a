#include "rlx/ops/gather.h"

#include "ops/infer.h"

namespace rlx::ops {

static Shape gathered(const Shape& table, const Shape& indices, int64_t axis) {
  Shape out;
  for (int64_t d = 0; d < axis; ++d) out.push_back(table[d]);
  for (const Dim& d : indices) out.push_back(d);
  for (int64_t d = axis + 1; d < table.rank(); ++d) out.push_back(table[d]);
  return out;
}

static Types infer_gather(const InferCall& call) {
  const TensorType &table = call.input(0), &indices = call.input(1);
  require_index(indices, "Indices");
  const int64_t axis = normalize_axis(call.attrs<GatherAttrs>().axis, table.rank());
  return TensorType{gathered(table.shape, indices.shape, axis), table.dtype};
}

static Types infer_gather_backward(const InferCall& call) {
  const TensorType &dy = call.input(0), &indices = call.input(1);
  const auto& attrs = call.attrs<GatherBackwardAttrs>();
  require(dy.dtype != DType::Bool, "Gradient dtype (bool) has no arithmetic; cast it.");
  require_index(indices, "Indices");
  TensorType table{Shape(attrs.table_shape), dy.dtype};
  for (const Dim& d : table.shape)
    require(!d.is_static() || d.value() >= 0, "Table shape ", table.shape, " has a negative size.");
  const int64_t axis = normalize_axis(attrs.axis, table.rank());
  require_shape(dy, gathered(table.shape, indices.shape, axis), "Gradient");
  return table;
}

static Types infer_scatter_add(const InferCall& call) {
  const TensorType &updates = call.input(0), &indices = call.input(1);
  const Dim& rows = call.attrs<ScatterAddAttrs>().rows;
  require(updates.dtype != DType::Bool, "Updates dtype (bool) has no arithmetic; cast it.");
  require_index(indices, "Indices");
  require_rank(indices, 1, "Indices");
  require(updates.rank() >= 1, "Updates rank (0) is less than 1.");
  require_same_dim(updates.dim(0), indices.dim(0), "Numbers of updates and indices");
  require(!rows.is_static() || rows.value() >= 0, "Rows (", rows, ") is negative.");
  TensorType y = updates;
  y.shape[0] = rows;
  return y;
}

static bool mixes_rows(const Attrs&, int64_t, int64_t axis) { return axis == 0; }

constinit const Op<GatherAttrs> gather{
    {.name = "gather",
     .category = "Gather and scatter",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather,
     .mixes_axis = mixes_attr_axis<GatherAttrs>,
     .doc = "Slices of a table along an axis, chosen by indices of any shape. Negative indices count from the end."}};

constinit const Op<GatherBackwardAttrs> gather_backward{
    {.name = "gather_backward",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of gather: the slices of dy added up where they came from in the table."}};

constinit const Op<ScatterAddAttrs> scatter_add{
    {.name = "scatter_add",
     .category = "Gather and scatter",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_scatter_add,
     .mixes_axis = mixes_rows,
     .traits = {.extent = ExtentRule::kOwnBound},  // zeros everywhere, then the updates in use
     .doc = "Zeros, then result[indices[u]] += updates[u] in ascending u. Negative indices count from the end."}};

}  // namespace rlx::ops
