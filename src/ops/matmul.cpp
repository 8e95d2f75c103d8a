#include "ops/matmul.h"

#include "ops/infer.h"
#include "rlx/ops/matmul.h"

namespace rlx::ops {

TensorType matmul_type(const TensorType& a, const TensorType& b, SymbolTable& symbols) {
  require_same_dtype(a, b);
  require(is_float(a.dtype) || is_int(a.dtype), "Matrices of dtype ", a.dtype, " have no product.");
  for (const TensorType* t : {&a, &b}) require(t->rank() >= 2, "Operand rank (", t->rank(), ") is less than 2.");
  require_same_dim(a.dim(a.rank() - 1), b.dim(b.rank() - 2), "Contracted sizes");
  const auto batch = [](const Shape& s) { return Shape(std::vector<Dim>(s.begin(), s.end() - 2)); };
  Shape shape = broadcast_shapes(batch(a.shape), batch(b.shape), symbols);
  shape.push_back(a.dim(a.rank() - 2));
  shape.push_back(b.dim(b.rank() - 1));
  return {shape, a.dtype};
}

static Types infer(const InferCall& call) { return matmul_type(call.input(0), call.input(1), call.symbols); }

static Types infer_grouped(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1), &index = call.input(2);
  require_rank(x, 2, "Operand x");
  require_rank(w, 3, "Operand w");
  require_index(index, "Operand expert_idx");
  require_shape(index, {x.dim(0)}, "Operand expert_idx");
  return matmul_type(x, {{w.dim(1), w.dim(2)}, w.dtype}, call.symbols);
}

constinit const Op<NoAttrs> matmul{
    {.name = "matmul",
     .category = "Linear algebra",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer,
     .mixes_axis = mixes_last_axis,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "[..., M, K] times [..., K, N]; batch dims broadcast, integers wrap, K = 0 gives zeros."}};

constinit const Op<NoAttrs> grouped_matmul{
    {.name = "grouped_matmul",
     .category = "Linear algebra",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_grouped,
     .mixes_axis = mixes_last_axis,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "y[i] = x[i] · w[expert_idx[i]]; an index out of range is an error."}};

}  // namespace rlx::ops
