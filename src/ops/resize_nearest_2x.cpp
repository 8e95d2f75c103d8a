#include "rlx/ops/resize_nearest_2x.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  TensorType y = call.input(0);
  require_rank(y, 4, "Operand");
  for (const int64_t axis : {2, 3}) y.shape[axis] = call.symbols.mul(y.dim(axis), Dim(2));
  return y;
}

constinit const Op<NoAttrs> resize_nearest_2x{{.name = "resize_nearest_2x",
                                               .category = "Shape",
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .infer = infer,
                                               .doc = "Doubles height and width of [N, C, H, W] by repetition."}};

}  // namespace rlx::ops
