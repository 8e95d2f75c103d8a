#include "rlx/ops/fused_matmul.h"

#include "ops/infer.h"
#include "ops/matmul.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/narrow.h"

namespace rlx::ops {

// x·w + bias, w shared by all batches.
static TensorType linear_type(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1), &bias = call.input(2);
  require_rank(w, 2, "Operand w");
  require_same_dtype(w, bias);
  require_shape(bias, {w.dim(1)}, "Operand bias");
  return matmul_type(x, w, call.symbols);
}

static Types infer_bias_act(const InferCall& call) {
  const TensorType y = linear_type(call);
  const ActivationKind kind = call.attrs<FusedMatmulBiasActAttrs>().activation;
  if (kind == ActivationKind::kNone) return y;
  return infer_types(activation_op(kind), {&y, 1}, Attrs(), call.symbols);
}

static Values decompose_bias_act(const DecomposeCall& call) {
  const Value sum = matmul(call.input(0), call.input(1)) + call.input(2);
  return {activate(sum, call.attrs<FusedMatmulBiasActAttrs>().activation)};
}

static Types infer_split(const InferCall& call) {
  const TensorType y = linear_type(call);
  const std::vector<Dim>& widths = call.attrs<FusedMatmulSplitAttrs>().widths;
  require(!widths.empty(), "The list of widths is empty.");
  Dim sum = 0;
  Types results;
  for (const Dim& width : widths) {
    require(!width.is_static() || width.value() >= 0, "Width (", width, ") is negative.");
    sum = call.symbols.add(sum, width);
    results.push_back(y);
    results.back().shape[y.rank() - 1] = width;
  }
  require_same_dim(sum, y.dim(y.rank() - 1), "Sum of the widths and columns of w");
  return results;
}

static Values decompose_split(const DecomposeCall& call) {
  const Value sum = matmul(call.input(0), call.input(1)) + call.input(2);
  Values parts;
  Dim start = 0;
  for (const Dim& width : call.attrs<FusedMatmulSplitAttrs>().widths) {
    parts.push_back(narrow(sum, {.axis = -1, .start = start, .len = width}));
    start = sum.graph().symbols().add(start, width);
  }
  return parts;
}

constinit const Op<FusedMatmulBiasActAttrs> fused_matmul_bias_act{
    {.name = "fused_matmul_bias_act",
     .category = "Fused",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_bias_act,
     .decompose = decompose_bias_act,
     .mixes_axis = mixes_last_axis,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "act(x·w + bias)."}};

constinit const Op<FusedMatmulSplitAttrs> fused_matmul_split{
    {.name = "fused_matmul_split",
     .category = "Fused",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_split,
     .decompose = decompose_split,
     .mixes_axis = mixes_last_axis,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "The columns of x·w + bias, a result per width."}};

}  // namespace rlx::ops
