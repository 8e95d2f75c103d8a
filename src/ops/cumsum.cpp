#include "rlx/ops/cumsum.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  require(x.dtype != DType::Bool, "Operand dtype (bool) has no arithmetic; cast it.");
  normalize_axis(call.attrs<CumsumAttrs>().axis, x.rank());
  return x;
}

constinit const Op<CumsumAttrs> cumsum{{.name = "cumsum",
                                        .category = "Reductions",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .infer = infer,
                                        .mixes_axis = mixes_attr_axis<CumsumAttrs>,
                                        .doc = "Running sum along one axis; integers wrap."}};

constinit const Op<CumsumAttrs> cumprod{{.name = "cumprod",
                                         .category = "Reductions",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = infer,
                                         .mixes_axis = mixes_attr_axis<CumsumAttrs>,
                                         .doc = "Running product along one axis; integers wrap."}};

constinit const Op<CumsumAttrs> cumsum_backward{
    {.name = "cumsum_backward",
     .category = "Backward",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = mixes_attr_axis<CumsumAttrs>,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of cumsum: the running sum of dy from the other end."}};

}  // namespace rlx::ops
