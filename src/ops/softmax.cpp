#include "rlx/ops/softmax.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  require_float(x);
  normalize_axis(call.attrs<SoftmaxAttrs>().axis, x.rank());
  return x;
}

constinit const Op<SoftmaxAttrs> softmax{{.name = "softmax",
                                          .category = "Reductions",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = infer,
                                          .mixes_axis = mixes_attr_axis<SoftmaxAttrs>,
                                          .traits = {.reduction = true, .in_place = 0b1},
                                          .doc = "exp(x - max) / sum(exp(x - max)) along one axis."}};

}  // namespace rlx::ops
