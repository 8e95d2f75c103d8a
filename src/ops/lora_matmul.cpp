#include "rlx/ops/lora_matmul.h"

#include "ops/infer.h"
#include "ops/matmul.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/matmul.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1), &a = call.input(2), &b = call.input(3);
  require_float(x);
  require_rank(w, 2, "Operand w");
  require_rank(a, 2, "Operand a");
  require_rank(b, 2, "Operand b");
  const TensorType y = matmul_type(x, w, call.symbols);
  const TensorType low = matmul_type(matmul_type(x, a, call.symbols), b, call.symbols);
  require_same_dim(w.dim(1), low.dim(low.rank() - 1), "Columns of w and b");
  return y;
}

// The scale goes to the narrow rank-r intermediate: fewer products than on the result.
static Values decompose(const DecomposeCall& call) {
  const Value &x = call.input(0), &w = call.input(1), &a = call.input(2), &b = call.input(3);
  const double scale[] = {call.attrs<LoraMatmulAttrs>().scale};
  const Value factor = x.graph().constant(Tensor::from_doubles(x.dtype(), {}, scale));
  return {matmul(x, w) + matmul(matmul(x, a) * factor, b)};
}

constinit const Op<LoraMatmulAttrs> lora_matmul{{.name = "lora_matmul",
                                                 .category = "Linear algebra",
                                                 .min_inputs = 4,
                                                 .max_inputs = 4,
                                                 .infer = infer,
                                                 .decompose = decompose,
                                                 .mixes_axis = mixes_last_axis,
                                                 .traits = {.compute_heavy = true, .fusion_boundary = true},
                                                 .doc = "x·w + (scale x·a)·b."}};

}  // namespace rlx::ops
