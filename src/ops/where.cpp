#include "rlx/ops/where.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType &cond = call.input(0), &yes = call.input(1), &no = call.input(2);
  require_same_dtype(yes, no);
  const Shape sides = broadcast_shapes(yes.shape, no.shape, call.symbols);
  return TensorType{broadcast_shapes(cond.shape, sides, call.symbols), yes.dtype};
}

constinit const Op<NoAttrs> where{{.name = "where",
                                   .category = "Elementwise",
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .infer = infer,
                                   .traits = {.elementwise = true, .in_place = 0b110},
                                   .doc = "on_true where cond != 0, else on_false; all three broadcast."}};

}  // namespace rlx::ops
