#include "rlx/ops/unary.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

Types infer_sign(const InferCall& call) {
  return is_int(call.input(0).dtype) ? Types(call.input(0)) : same_as_float_input(call);
}

Types infer_test(const InferCall& call) { return TensorType{same_as_float_input(call)[0].shape, DType::Bool}; }

}  // namespace

constinit const Op<NoAttrs> erf{elementwise_unary("erf", same_as_float_input, "The error function.")};
constinit const Op<NoAttrs> floor{elementwise_unary("floor", same_as_float_input, "The largest integer not above x.")};
constinit const Op<NoAttrs> ceil{elementwise_unary("ceil", same_as_float_input, "The smallest integer not below x.")};
constinit const Op<NoAttrs> sign{
    elementwise_unary("sign", infer_sign, "-1, 0 or 1 as x is below, at or above 0; NaN stays NaN.")};
constinit const Op<NoAttrs> asin{
    elementwise_unary("asin", same_as_float_input, "The arc sine, in radians; NaN outside [-1, 1].")};
constinit const Op<NoAttrs> acos{
    elementwise_unary("acos", same_as_float_input, "The arc cosine, in radians; NaN outside [-1, 1].")};
constinit const Op<NoAttrs> sinh{elementwise_unary("sinh", same_as_float_input, "The hyperbolic sine.")};
constinit const Op<NoAttrs> cosh{elementwise_unary("cosh", same_as_float_input, "The hyperbolic cosine.")};
constinit const Op<NoAttrs> asinh{elementwise_unary("asinh", same_as_float_input, "The inverse of sinh.")};
constinit const Op<NoAttrs> acosh{
    elementwise_unary("acosh", same_as_float_input, "The inverse of cosh, not below 0; NaN below 1.")};
constinit const Op<NoAttrs> atanh{
    elementwise_unary("atanh", same_as_float_input, "The inverse of tanh: infinite at -1 and 1, NaN beyond.")};

constinit const Op<NoAttrs> is_nan{elementwise_unary("is_nan", infer_test, "Is x NaN? As Bool.")};
constinit const Op<IsInfAttrs> is_inf{elementwise_unary(
    "is_inf", infer_test, "Is x inf (with detect_positive) or -inf (with detect_negative)? As Bool.")};

}  // namespace rlx::ops
