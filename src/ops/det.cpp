#include "rlx/ops/det.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  require_float(x);
  require(x.rank() >= 2, "Operand rank (", x.rank(), ") is less than 2.");
  require_same_dim(x.dim(x.rank() - 2), x.dim(x.rank() - 1), "Sides of the matrix");
  TensorType y{{}, x.dtype};
  for (int64_t a = 0; a + 2 < x.rank(); ++a) y.shape.push_back(x.dim(a));
  return y;
}

constinit const Op<NoAttrs> det{
    {.name = "det",
     .category = "Linear algebra",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .mixes_axis = [](const Attrs&, int64_t rank, int64_t axis) { return axis >= rank - 2; },
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "Determinants of the matrices that the last two axes hold, by LU with partial pivoting."}};

}  // namespace rlx::ops
