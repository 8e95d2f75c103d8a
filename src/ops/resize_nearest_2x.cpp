#include "rlx/ops/resize_nearest_2x.h"

#include "ops/infer.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/reshape.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  TensorType y = call.input(0);
  require_rank(y, 4, "Operand");
  for (const int64_t axis : {2, 3}) y.shape[axis] = call.symbols.mul(y.dim(axis), Dim(2));
  return y;
}

// Each pixel becomes a 2 x 2 square: y[2h + i, 2w + j] = x[h, w].
static Values decompose(const DecomposeCall& call) {
  const Value& x = call.input(0);
  const Shape s = x.shape();
  SymbolTable& symbols = x.graph().symbols();
  const Value cells = reshape(x, {.new_shape = {s[0], s[1], s[2], 1, s[3], 1}});
  const Value squares = expand(cells, {.target_shape = {s[0], s[1], s[2], 2, s[3], 2}});
  return {reshape(squares, {.new_shape = {s[0], s[1], symbols.mul(s[2], 2), symbols.mul(s[3], 2)}})};
}

constinit const Op<NoAttrs> resize_nearest_2x{{.name = "resize_nearest_2x",
                                               .category = "Shape",
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .infer = infer,
                                               .decompose = decompose,
                                               .doc = "Doubles height and width of [N, C, H, W] by repetition."}};

}  // namespace rlx::ops
