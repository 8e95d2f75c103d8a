#include "rlx/ops/activation.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

// exp, log, sqrt: c64 too.
Types infer_complex(const InferCall& call) {
  return is_complex(call.input(0).dtype) ? Types(call.input(0)) : same_as_float_input(call);
}

// relu, abs: signed integers too, exactly.
Types infer_signed(const InferCall& call) {
  return is_signed(call.input(0).dtype) ? Types(call.input(0)) : same_as_float_input(call);
}

Types infer_neg(const InferCall& call) {
  return is_signed(call.input(0).dtype) ? Types(call.input(0)) : infer_complex(call);
}

}  // namespace

constinit const Op<NoAttrs> relu{elementwise_unary("relu", infer_signed, "max(x, 0); NaN stays NaN.")};
constinit const Op<NoAttrs> sigmoid{elementwise_unary("sigmoid", same_as_float_input, "1 / (1 + exp(-x)).")};
constinit const Op<NoAttrs> tanh{elementwise_unary("tanh", same_as_float_input, "The hyperbolic tangent.")};
constinit const Op<NoAttrs> exp{elementwise_unary("exp", infer_complex, "e to the power x.")};
constinit const Op<NoAttrs> log{elementwise_unary(
    "log", infer_complex, "The natural logarithm: -inf at 0, NaN below; of c64 the principal value.")};
constinit const Op<NoAttrs> sqrt{
    elementwise_unary("sqrt", infer_complex, "The square root: NaN below 0; of c64 the principal value.")};
constinit const Op<NoAttrs> rsqrt{elementwise_unary("rsqrt", same_as_float_input, "1 / sqrt(x); inf at 0.")};
constinit const Op<NoAttrs> neg{elementwise_unary("neg", infer_neg, "-x; integers wrap.")};
constinit const Op<NoAttrs> abs{elementwise_unary("abs", infer_signed, "The absolute value; integers wrap.")};
constinit const Op<NoAttrs> gelu{
    elementwise_unary("gelu", same_as_float_input, "x * (1 + erf(x / sqrt(2))) / 2, never the tanh form.")};
constinit const Op<NoAttrs> silu{elementwise_unary("silu", same_as_float_input, "x / (1 + exp(-x)).")};
constinit const Op<NoAttrs> gelu_approx{
    elementwise_unary("gelu_approx", same_as_float_input, "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.")};
constinit const Op<NoAttrs> round{
    elementwise_unary("round", same_as_float_input, "The nearest integer, ties to even.")};
constinit const Op<NoAttrs> sin{elementwise_unary("sin", same_as_float_input, "The sine of x in radians.")};
constinit const Op<NoAttrs> cos{elementwise_unary("cos", same_as_float_input, "The cosine of x in radians.")};
constinit const Op<NoAttrs> tan{elementwise_unary("tan", same_as_float_input, "The tangent of x in radians.")};
constinit const Op<NoAttrs> atan{elementwise_unary("atan", same_as_float_input, "The arc tangent, in radians.")};

const Op<NoAttrs>& activation_op(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone: fail(ErrorKind::kInvalid, "Activation kind (none) has no op.");
    case ActivationKind::kRelu: return relu;
    case ActivationKind::kSigmoid: return sigmoid;
    case ActivationKind::kTanh: return tanh;
    case ActivationKind::kExp: return exp;
    case ActivationKind::kLog: return log;
    case ActivationKind::kSqrt: return sqrt;
    case ActivationKind::kRsqrt: return rsqrt;
    case ActivationKind::kNeg: return neg;
    case ActivationKind::kAbs: return abs;
    case ActivationKind::kGelu: return gelu;
    case ActivationKind::kSilu: return silu;
    case ActivationKind::kGeluApprox: return gelu_approx;
    case ActivationKind::kRound: return round;
    case ActivationKind::kSin: return sin;
    case ActivationKind::kCos: return cos;
    case ActivationKind::kTan: return tan;
    case ActivationKind::kAtan: return atan;
  }
  fail(ErrorKind::kInternal, "Unknown activation kind.");
}

Value activate(const Value& x, ActivationKind kind) {
  return kind == ActivationKind::kNone ? x : activation_op(kind)(x);
}

}  // namespace rlx::ops

namespace rlx {

Value operator-(const Value& x) { return ops::neg(x); }

}  // namespace rlx
