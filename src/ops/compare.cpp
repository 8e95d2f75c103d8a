#include "rlx/ops/compare.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_equal(const InferCall& call) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require_same_dtype(a, b);
  return TensorType{broadcast_shapes(a.shape, b.shape, call.symbols), DType::Bool};
}

static Types infer_order(const InferCall& call) {
  const DType dtype = call.input(0).dtype;
  require(!is_complex(dtype) && dtype != DType::Bool, "Op '", call.op().name, "' is not defined for ", dtype, ".");
  return infer_equal(call);
}

constinit const Op<NoAttrs> eq{elementwise_pair("eq", infer_equal, true, "a == b as Bool; false where one is NaN.")};
constinit const Op<NoAttrs> ne{elementwise_pair("ne", infer_equal, true, "a != b as Bool; true where one is NaN.")};
constinit const Op<NoAttrs> lt{elementwise_pair("lt", infer_order, false, "a < b as Bool; false where one is NaN.")};
constinit const Op<NoAttrs> le{elementwise_pair("le", infer_order, false, "a <= b as Bool; false where one is NaN.")};
constinit const Op<NoAttrs> gt{elementwise_pair("gt", infer_order, false, "a > b as Bool; false where one is NaN.")};
constinit const Op<NoAttrs> ge{elementwise_pair("ge", infer_order, false, "a >= b as Bool; false where one is NaN.")};

const Op<NoAttrs>& compare_op(CompareKind kind) {
  switch (kind) {
    case CompareKind::kEq: return eq;
    case CompareKind::kNe: return ne;
    case CompareKind::kLt: return lt;
    case CompareKind::kLe: return le;
    case CompareKind::kGt: return gt;
    case CompareKind::kGe: return ge;
  }
  fail(ErrorKind::kInternal, "Unknown compare kind.");
}

}  // namespace rlx::ops
