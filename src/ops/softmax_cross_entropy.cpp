#include "rlx/ops/softmax_cross_entropy.h"

#include "ops/infer.h"

namespace rlx::ops {

static void check(const InferCall& call) {
  const TensorType &logits = call.input(0), &labels = call.input(1);
  require_float(logits, "Logits");
  require_rank(logits, 2, "Logits");
  require_index(labels, "Labels");
  require_shape(labels, {logits.dim(0)}, "Labels");
}

static Types infer_loss(const InferCall& call) {
  check(call);
  return TensorType{{call.input(0).dim(0)}, call.input(0).dtype};
}

static Types infer_backward(const InferCall& call) {
  check(call);
  require_same_dtype(call.input(0), call.input(2));
  require_shape(call.input(2), {call.input(0).dim(0)}, "Loss gradient");
  return call.input(0);
}

static bool mixes_axis(const Attrs&, int64_t, int64_t axis) { return axis == 1; }

constinit const Op<NoAttrs> softmax_cross_entropy_with_logits{
    {.name = "softmax_cross_entropy_with_logits",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_loss,
     .mixes_axis = mixes_axis,
     .doc = "log(sum(exp(row))) - row[label], per row of logits [N, C]."}};

constinit const Op<NoAttrs> softmax_cross_entropy_backward{
    {.name = "softmax_cross_entropy_backward",
     .category = "Backward",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_backward,
     .mixes_axis = mixes_axis,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of softmax_cross_entropy_with_logits: (softmax(row) - onehot(label)) * d_loss."}};

}  // namespace rlx::ops
