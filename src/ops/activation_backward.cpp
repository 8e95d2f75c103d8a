#include "rlx/ops/activation_backward.h"

#include <numbers>

#include "ops/in_f32.h"
#include "ops/infer.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/compare.h"
#include "rlx/ops/where.h"

namespace rlx::ops {

static Types infer_relu(const InferCall& call) {
  const TensorType &x = call.input(0), &dy = call.input(1);
  require_float(x);
  require_same_dtype(x, dy);
  require_shape(dy, x.shape, "Operand dy");
  return x;
}

static Types infer(const InferCall& call) {
  require(call.attrs<ActivationBackwardAttrs>().kind != ActivationKind::kNone, "Activation kind (none) has no op.");
  return infer_relu(call);
}

namespace {

// f'(x), the table of spec 10, 4.2, in ops.
class Derivative {
 public:
  explicit Derivative(const Value& x) : x_(x) {}

  Value of(ActivationKind kind) const {
    using enum ActivationKind;
    const Value& x = x_;
    switch (kind) {
      case kNone:
      case kRound: return number(1);  // straight through
      case kRelu: return where(gt(x, number(0)), number(1), number(0));
      case kSigmoid: return sigmoid(x) * sigmoid(-x);
      case kTanh: return one_minus_square(tanh(x));
      case kExp: return exp(x);
      case kLog: return number(1) / x;
      case kSqrt: return where_root(number(0.5) / sqrt(x));
      case kRsqrt: return where_root(number(-0.5) / (x * sqrt(x)));
      case kNeg: return number(-1);
      case kAbs: return where(gt(x, number(0)), number(1), where(lt(x, number(0)), number(-1), number(0)));
      case kGelu: return gelu_form();
      case kSilu: return sigmoid(x) * (number(1) + near_zero() * sigmoid(-x));
      case kGeluApprox: return gelu_approx_form();
      case kSin: return cos(x);
      case kCos: return -sin(x);
      case kTan: return number(1) + tan(x) * tan(x);
      case kAtan: return number(1) / (number(1) + x * x);
    }
    fail(ErrorKind::kInternal, "Unknown activation kind.");
  }

 private:
  Value number(double v) const { return scalar_like(x_, v); }
  Value one_minus_square(const Value& t) const { return number(1) - t * t; }
  Value where_root(const Value& v) const { return where(gt(sqrt(x_), number(0)), v, number(0)); }

  // x, but its powers stay finite: the derivative of what is saturated there does not change any more. NaN for what is
  // not finite, as without it.
  Value near_zero() const { return max(min(x_, number(1e4)), number(-1e4)) + (x_ - x_); }

  // Phi(x) + x phi(x). Phi is gelu(x) / x, which is 1/2 at 0: the form with erf, without an op for it.
  Value gelu_form() const {
    const Value phi_sum = where(eq(x_, number(0)), number(0.5), gelu(x_) / x_);
    const Value density = exp(number(-0.5) * x_ * x_) * number(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    return phi_sum + x_ * density;
  }

  Value gelu_approx_form() const {
    const double c = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // gelu_approx(x) = x sigmoid(c (x + ...))
    const Value x = near_zero(), square = x * x;
    const Value u = number(c) * (x + number(0.044715) * square * x);
    const Value slope = number(c) * (number(1) + number(3 * 0.044715) * square);
    return sigmoid(u) * (number(1) + x * sigmoid(-u) * slope);
  }

  Value x_;
};

// dy where x > 0, else 0: whatever dy is there, so it is selected and not multiplied.
Values relu_form(const DecomposeCall& call) {
  const Value &x = call.input(0), &dy = call.input(1);
  const Value positive = gt(x, scalar_like(x, 0));
  return {where(positive, dy, scalar_like(x, 0))};
}

Values decompose(const DecomposeCall& call) {
  const ActivationKind kind = call.attrs<ActivationBackwardAttrs>().kind;
  if (kind == ActivationKind::kRelu) return relu_form(call);
  const Values in = in_f32(call.inputs());
  return {as_dtype(Derivative(in[0]).of(kind) * in[1], call.input(0).dtype())};
}

}  // namespace

static constexpr OpDef backward(std::string_view name, Types (*rule)(const InferCall&),
                                Values (*definition)(const DecomposeCall&), std::string_view doc) {
  return {.name = name,
          .category = "Backward",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = rule,
          .decompose = definition,
          .traits = {.in_place = 0b11, .extent = ExtentRule::kNever},
          .doc = doc};
}

constinit const Op<ActivationBackwardAttrs> activation_backward{backward(
    "activation_backward", infer, decompose, "f'(x) * dy for the activation f of a kind; round passes dy on.")};
constinit const Op<NoAttrs> relu_backward{backward("relu_backward", infer_relu, relu_form, "dy where x > 0, else 0.")};

}  // namespace rlx::ops
