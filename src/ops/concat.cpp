#include "rlx/ops/concat.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  TensorType y = call.input(0);
  const int64_t axis = normalize_axis(call.attrs<ConcatAttrs>().axis, y.rank());
  Dim sum(0);
  for (int64_t i = 0; i < call.num_inputs(); ++i) {
    const TensorType& x = call.input(i);
    require_same_dtype(call.input(0), x);
    require_rank(x, y.rank(), str("Operand ", i));
    for (int64_t d = 0; d < y.rank(); ++d) {
      if (d == axis) continue;
      require_same_dim(y.dim(d), x.dim(d), str("Sizes of axis ", d));
      if (x.dim(d).is_static()) y.shape[d] = x.dim(d);
    }
    sum = call.symbols.add(sum, x.dim(axis));
  }
  y.shape[axis] = sum;
  return y;
}

constinit const Op<ConcatAttrs> concat{{.name = "concat",
                                        .category = "Shape",
                                        .min_inputs = 1,
                                        .max_inputs = kVariadic,
                                        .infer = infer,
                                        .mixes_axis = mixes_attr_axis<ConcatAttrs>,
                                        .doc = "The operands one after the other along an axis."}};

}  // namespace rlx::ops
