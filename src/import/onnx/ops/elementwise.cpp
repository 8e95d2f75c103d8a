// Element-wise ops. ONNX wants operands of one type (casts are nodes of their own) and broadcasts as NumPy does.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/strings.h"

namespace rlx::onnx {

namespace {

template <const Op<NoAttrs>& op>
Built unary(OnnxNode& n) {
  return op(n.input(0));
}

// Before opset 7 operands broadcast only on request, the second one's first axis aligned with `axis`.
Value legacy_operand(OnnxNode& n, const Value& a, const Value& b) {
  if (n.opset() >= 7 || !n.attr("broadcast", false)) return b;
  const int64_t axis = n.attr("axis", a.shape().rank() - b.shape().rank());
  require(axis >= 0 && axis <= a.shape().rank() - b.shape().rank(), "Axis (", axis, ") does not align ", b.type(),
          " with ", a.type(), ".");
  std::vector<Dim> shape = b.shape().dims();
  for (int64_t i = axis + b.shape().rank(); i < a.shape().rank(); ++i) shape.push_back(1);
  return reshape_to(b, std::move(shape));
}

template <const Op<NoAttrs>& op>
Built binary(OnnxNode& n) {
  const Value a = n.input(0);
  const Value b = legacy_operand(n, a, n.input(1));
  return op(a, b);
}

// Max, Min, Sum, Mean: any number of operands.
template <const Op<NoAttrs>& op>
Value folded(OnnxNode& n) {
  Value all = n.input(0);
  for (int64_t i = 1; i < n.num_inputs(); ++i) all = op(all, n.input(i));
  return all;
}

template <const Op<NoAttrs>& op>
Built variadic(OnnxNode& n) {
  return folded<op>(n);
}

Built mean(OnnxNode& n) {
  const Value sum = folded<ops::add>(n);
  return sum / scalar_like(n, sum, static_cast<double>(n.num_inputs()));
}

// The exponent may have another type; the result has the base's.
Built pow(OnnxNode& n) {
  const Value a = n.input(0);
  const Value b = legacy_operand(n, a, n.input(1));
  const DType common = promote(a.dtype(), b.dtype());
  const Value y = ops::pow(cast_to(a, common), cast_to(b, common));
  return cast_to(y, a.dtype());
}

Built clip_attributes(OnnxNode& n) {
  Value x = n.input(0);
  if (n.has_attr("min")) x = ops::max(x, scalar_like(n, x, n.attr("min", 0.0f)));
  if (n.has_attr("max")) x = ops::min(x, scalar_like(n, x, n.attr("max", 0.0f)));
  return x;
}

Built clip(OnnxNode& n) {
  Value x = n.input(0);
  if (n.has(1)) x = ops::max(x, n.input(1));
  if (n.has(2)) x = ops::min(x, n.input(2));
  return x;
}

Built reciprocal(OnnxNode& n) {
  const Value x = n.input(0);
  return scalar_like(n, x, 1) / x;
}

Built leaky_relu(OnnxNode& n) {
  const Value x = n.input(0);
  const Value zero = scalar_like(n, x, 0);
  const Value alpha = scalar_like(n, x, n.attr("alpha", 0.01f));
  const Value below = ops::mul(x, alpha);
  return ops::where(ops::lt(x, zero), below, x);
}

// A slope of shape [C] belongs to axis 1 in old models.
Built prelu(OnnxNode& n) {
  const Value x = n.input(0);
  Value slope = n.input(1);
  if (slope.shape().rank() == 1 && x.shape().rank() > 2 && n.opset() < 9)
    slope = reshape_to(slope, [&] {
      std::vector<Dim> shape(static_cast<size_t>(x.shape().rank() - 1), Dim(1));
      shape[0] = slope.shape()[0];
      return shape;
    }());
  const Value below = ops::mul(x, slope);
  return ops::where(ops::lt(x, scalar_like(n, x, 0)), below, x);
}

Value exp_minus_1(OnnxNode& n, const Value& x) {
  const Value e = ops::exp(x);
  return e - scalar_like(n, x, 1);
}

Built elu(OnnxNode& n) {
  const Value x = n.input(0);
  const Value zero = scalar_like(n, x, 0);
  const Value low = ops::min(x, zero);  // no overflow where x is large
  const Value below = exp_minus_1(n, low) * scalar_like(n, x, n.attr("alpha", 1.0f));
  return ops::where(ops::lt(x, zero), below, x);
}

Built celu(OnnxNode& n) {
  const Value x = n.input(0);
  const Value zero = scalar_like(n, x, 0);
  const Value alpha = scalar_like(n, x, n.attr("alpha", 1.0f));
  const Value low = ops::min(x, zero) / alpha;
  return ops::max(x, zero) + exp_minus_1(n, low) * alpha;
}

Built selu(OnnxNode& n) {
  const Value x = n.input(0);
  const Value zero = scalar_like(n, x, 0);
  const Value alpha = scalar_like(n, x, n.attr("alpha", n.opset() < 6 ? 1.6732f : 1.67326319217681884765625f));
  const Value gamma = scalar_like(n, x, n.attr("gamma", n.opset() < 6 ? 1.0507f : 1.05070102214813232421875f));
  const Value below = exp_minus_1(n, ops::min(x, zero)) * alpha;
  return ops::where(ops::le(x, zero), below, x) * gamma;
}

Built hard_sigmoid(OnnxNode& n) {
  const Value x = n.input(0);
  const Value y = x * scalar_like(n, x, n.attr("alpha", 0.2f)) + scalar_like(n, x, n.attr("beta", 0.5f));
  return ops::min(ops::max(y, scalar_like(n, x, 0)), scalar_like(n, x, 1));
}

Built hard_swish(OnnxNode& n) {
  const Value x = n.input(0);
  const Value y = x * scalar_like(n, x, 1.0 / 6) + scalar_like(n, x, 0.5);
  return x * ops::min(ops::max(y, scalar_like(n, x, 0)), scalar_like(n, x, 1));
}

// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)).
Value softplus_of(OnnxNode& n, const Value& x) {
  const Value small = ops::exp(-ops::abs(x));
  return ops::max(x, scalar_like(n, x, 0)) + ops::log(small + scalar_like(n, x, 1));
}

Built softplus(OnnxNode& n) { return softplus_of(n, n.input(0)); }

Built softsign(OnnxNode& n) {
  const Value x = n.input(0);
  const Value below = ops::abs(x) + scalar_like(n, x, 1);
  return x / below;
}

Built mish(OnnxNode& n) {
  const Value x = n.input(0);
  return x * ops::tanh(softplus_of(n, x));
}

Built swish(OnnxNode& n) {
  const Value x = n.input(0);
  const float alpha = n.attr("alpha", 1.0f);
  if (alpha == 1.0f) return ops::silu(x);
  return x * ops::sigmoid(x * scalar_like(n, x, alpha));
}

Built gelu(OnnxNode& n) {
  return n.attr("approximate", "none") == "tanh" ? ops::gelu_approx(n.input(0)) : ops::gelu(n.input(0));
}

Built thresholded_relu(OnnxNode& n) {
  const Value x = n.input(0);
  return ops::where(ops::gt(x, scalar_like(n, x, n.attr("alpha", 1.0f))), x, scalar_like(n, x, 0));
}

Built shrink(OnnxNode& n) {
  const Value x = n.input(0);
  const double lambd = n.attr("lambd", 0.5f), bias = n.attr("bias", 0.0f);
  const Value zero = scalar_like(n, x, 0);
  const Value above = ops::where(ops::gt(x, scalar_like(n, x, lambd)), x - scalar_like(n, x, bias), zero);
  return ops::where(ops::lt(x, scalar_like(n, x, -lambd)), x + scalar_like(n, x, bias), above);
}

Built equal(OnnxNode& n) { return is_strings(n, 0) ? strings_equal(n) : binary<ops::eq>(n); }

Built where(OnnxNode& n) {
  const Value condition = n.input(0);
  return n.like(ops::where(condition, n.input(1), n.input(2)), 1);
}

// fmod: 1 takes the sign of the dividend, else that of the divisor.
Built mod(OnnxNode& n) {
  const Value a = n.input(0);
  return n.attr("fmod", false) ? ops::fmod(a, n.input(1)) : ops::mod(a, n.input(1));
}

Built bit_shift(OnnxNode& n) {
  const Value x = n.input(0);
  return n.attr("direction", "LEFT") == "LEFT" ? ops::shift_left(x, n.input(1)) : ops::shift_right(x, n.input(1));
}

Built is_inf(OnnxNode& n) {
  return ops::is_inf(n.input(0), {.detect_positive = n.attr("detect_positive", true),
                                  .detect_negative = n.attr("detect_negative", true)});
}

Built abs(OnnxNode& n) { return magnitude(n.input(0)); }

Built bool_not(OnnxNode& n) { return ops::bit_not(n.input(0)); }

}  // namespace

Rows elementwise_rows() {
  return {
      {"Abs", 1, abs},
      {"Acos", 7, unary<ops::acos>},
      {"Acosh", 9, unary<ops::acosh>},
      {"Add", 1, binary<ops::add>},
      {"And", 1, binary<ops::bit_and>},
      {"Asin", 7, unary<ops::asin>},
      {"Asinh", 9, unary<ops::asinh>},
      {"Atan", 1, unary<ops::atan>},
      {"Atanh", 9, unary<ops::atanh>},
      {"BitShift", 11, bit_shift},
      {"BitwiseAnd", 18, binary<ops::bit_and>},
      {"BitwiseNot", 18, bool_not},
      {"BitwiseOr", 18, binary<ops::bit_or>},
      {"BitwiseXor", 18, binary<ops::bit_xor>},
      {"Ceil", 1, unary<ops::ceil>},
      {"Celu", 12, celu},
      {"Clip", 1, clip_attributes},
      {"Clip", 11, clip},
      {"Cos", 1, unary<ops::cos>},
      {"Cosh", 9, unary<ops::cosh>},
      {"Div", 1, binary<ops::div>},
      {"Elu", 1, elu},
      {"Equal", 1, equal},
      {"Erf", 9, unary<ops::erf>},
      {"Exp", 1, unary<ops::exp>},
      {"Floor", 1, unary<ops::floor>},
      {"Gelu", 20, gelu},
      {"Greater", 1, binary<ops::gt>},
      {"GreaterOrEqual", 12, binary<ops::ge>},
      {"HardSigmoid", 1, hard_sigmoid},
      {"HardSwish", 14, hard_swish},
      {"IsInf", 10, is_inf},
      {"IsNaN", 9, unary<ops::is_nan>},
      {"LeakyRelu", 1, leaky_relu},
      {"Less", 1, binary<ops::lt>},
      {"LessOrEqual", 12, binary<ops::le>},
      {"Log", 1, unary<ops::log>},
      {"Max", 1, variadic<ops::max>},
      {"Mean", 1, mean},
      {"Min", 1, variadic<ops::min>},
      {"Mish", 18, mish},
      {"Mod", 10, mod},
      {"Mul", 1, binary<ops::mul>},
      {"Neg", 1, unary<ops::neg>},
      {"Not", 1, bool_not},
      {"Or", 1, binary<ops::bit_or>},
      {"PRelu", 1, prelu},
      {"Pow", 1, pow},
      {"Reciprocal", 1, reciprocal},
      {"Relu", 1, unary<ops::relu>},
      {"Round", 11, unary<ops::round>},
      {"Selu", 1, selu},
      {"Shrink", 9, shrink},
      {"Sigmoid", 1, unary<ops::sigmoid>},
      {"Sign", 9, unary<ops::sign>},
      {"Sin", 1, unary<ops::sin>},
      {"Sinh", 9, unary<ops::sinh>},
      {"Softplus", 1, softplus},
      {"Softsign", 1, softsign},
      {"Sqrt", 1, unary<ops::sqrt>},
      {"Sub", 1, binary<ops::sub>},
      {"Sum", 1, variadic<ops::add>},
      {"Swish", 24, swish},
      {"Tan", 1, unary<ops::tan>},
      {"Tanh", 1, unary<ops::tanh>},
      {"ThresholdedRelu", 1, thresholded_relu},
      {"Where", 9, where},
      {"Xor", 1, binary<ops::bit_xor>},
  };
}

}  // namespace rlx::onnx
