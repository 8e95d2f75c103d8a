#include "rlx/ops/dense_solve.h"

#include "ops/infer.h"

namespace rlx::ops {

// `batch` leading axes, then A [N, N] and b [N] or [N, K].
static Types infer_solve(const InferCall& call, int64_t batch) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require(a.dtype == DType::F32 || a.dtype == DType::F64, "Matrix dtype (", a.dtype, ") is not f32 or f64.");
  require_same_dtype(a, b);
  require_rank(a, batch + 2, "Matrix");
  require(b.rank() == batch + 1 || b.rank() == batch + 2, "Right-hand side rank (", b.rank(), ") is not ", batch + 1,
          " or ", batch + 2, ".");
  require_same_dim(a.dim(batch), a.dim(batch + 1), "Sides of the matrix");
  for (int64_t i = 0; i <= batch; ++i) require_same_dim(a.dim(i), b.dim(i), "Sizes of matrix and right-hand side");
  return b;
}

static Types infer(const InferCall& call) { return infer_solve(call, 0); }
static Types infer_batched(const InferCall& call) { return infer_solve(call, 1); }

constinit const Op<NoAttrs> dense_solve{{.name = "dense_solve",
                                         .category = "Linear algebra",
                                         .min_inputs = 2,
                                         .max_inputs = 2,
                                         .infer = infer,
                                         .mixes_axis = [](const Attrs&, int64_t, int64_t) { return true; },
                                         .traits = {.compute_heavy = true, .fusion_boundary = true},
                                         .doc = "x with A·x = b, by LU with partial pivoting; a singular A is an "
                                                "error."}};

constinit const Op<NoAttrs> batched_dense_solve{
    {.name = "batched_dense_solve",
     .category = "Linear algebra",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_batched,
     .mixes_axis = [](const Attrs&, int64_t, int64_t axis) { return axis != 0; },
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "dense_solve of every slice along axis 0."}};

}  // namespace rlx::ops
