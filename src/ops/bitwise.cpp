#include "rlx/ops/bitwise.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

void require_bits(const InferCall& call, bool takes_bool) {
  const DType dtype = call.input(0).dtype;
  require(is_int(dtype) || (takes_bool && dtype == DType::Bool), "Op '", call.op().name, "' is not defined for ", dtype,
          ".");
}

Types infer_pair(const InferCall& call) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require_same_dtype(a, b);
  return TensorType{broadcast_shapes(a.shape, b.shape, call.symbols), a.dtype};
}

Types infer_logic(const InferCall& call) {
  require_bits(call, true);
  return infer_pair(call);
}
Types infer_shift(const InferCall& call) {
  require_bits(call, false);
  return infer_pair(call);
}
Types infer_not(const InferCall& call) {
  require_bits(call, true);
  return call.input(0);
}

}  // namespace

constinit const Op<NoAttrs> bit_and{
    elementwise_pair("bit_and", infer_logic, true, "The bits that a and b have; of Bool a and b.")};
constinit const Op<NoAttrs> bit_or{
    elementwise_pair("bit_or", infer_logic, true, "The bits that a or b has; of Bool a or b.")};
constinit const Op<NoAttrs> bit_xor{
    elementwise_pair("bit_xor", infer_logic, true, "The bits that one of a and b has; of Bool a is not b.")};
constinit const Op<NoAttrs> bit_not{elementwise_unary("bit_not", infer_not, "All bits inverted; of Bool not x.")};
constinit const Op<NoAttrs> shift_left{elementwise_pair(
    "shift_left", infer_shift, false, "x * 2^count, wrapping; 0 for a count that is negative or not below the width.")};
constinit const Op<NoAttrs> shift_right{elementwise_pair(
    "shift_right", infer_shift, false,
    "floor(x / 2^count); 0 (-1 for a negative x) for a count that is negative or not below the width.")};

}  // namespace rlx::ops
