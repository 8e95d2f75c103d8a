#include "rlx/ops/activation.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

Types infer_float(const InferCall& call) {
  const TensorType& x = call.input(0);
  require(is_float(x.dtype), "Op '", call.op().name, "' is not defined for ", x.dtype, ".");
  return x;
}

// exp, log, sqrt: c64 too.
Types infer_complex(const InferCall& call) {
  return is_complex(call.input(0).dtype) ? Types(call.input(0)) : infer_float(call);
}

// relu, abs: signed integers too, exactly.
Types infer_signed(const InferCall& call) {
  return is_signed(call.input(0).dtype) ? Types(call.input(0)) : infer_float(call);
}

Types infer_neg(const InferCall& call) {
  return is_signed(call.input(0).dtype) ? Types(call.input(0)) : infer_complex(call);
}

constexpr OpDef activation(std::string_view name, Types (*rule)(const InferCall&), std::string_view doc) {
  return {.name = name,
          .category = "Elementwise",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = rule,
          .traits = {.elementwise = true, .in_place = 0b1},
          .doc = doc};
}

}  // namespace

constinit const Op<NoAttrs> relu{activation("relu", infer_signed, "max(x, 0); NaN stays NaN.")};
constinit const Op<NoAttrs> sigmoid{activation("sigmoid", infer_float, "1 / (1 + exp(-x)).")};
constinit const Op<NoAttrs> tanh{activation("tanh", infer_float, "The hyperbolic tangent.")};
constinit const Op<NoAttrs> exp{activation("exp", infer_complex, "e to the power x.")};
constinit const Op<NoAttrs> log{
    activation("log", infer_complex, "The natural logarithm: -inf at 0, NaN below; of c64 the principal value.")};
constinit const Op<NoAttrs> sqrt{
    activation("sqrt", infer_complex, "The square root: NaN below 0; of c64 the principal value.")};
constinit const Op<NoAttrs> rsqrt{activation("rsqrt", infer_float, "1 / sqrt(x); inf at 0.")};
constinit const Op<NoAttrs> neg{activation("neg", infer_neg, "-x; integers wrap.")};
constinit const Op<NoAttrs> abs{activation("abs", infer_signed, "The absolute value; integers wrap.")};
constinit const Op<NoAttrs> gelu{
    activation("gelu", infer_float, "x * (1 + erf(x / sqrt(2))) / 2, never the tanh form.")};
constinit const Op<NoAttrs> silu{activation("silu", infer_float, "x / (1 + exp(-x)).")};
constinit const Op<NoAttrs> gelu_approx{
    activation("gelu_approx", infer_float, "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.")};
constinit const Op<NoAttrs> round{activation("round", infer_float, "The nearest integer, ties to even.")};
constinit const Op<NoAttrs> sin{activation("sin", infer_float, "The sine of x in radians.")};
constinit const Op<NoAttrs> cos{activation("cos", infer_float, "The cosine of x in radians.")};
constinit const Op<NoAttrs> tan{activation("tan", infer_float, "The tangent of x in radians.")};
constinit const Op<NoAttrs> atan{activation("atan", infer_float, "The arc tangent, in radians.")};

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
