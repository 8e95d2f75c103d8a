#include "rlx/ops/binary.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require_same_dtype(a, b);
  require(a.dtype != DType::Bool, "Operand dtype (bool) has no arithmetic; cast it.");
  return TensorType{broadcast_shapes(a.shape, b.shape, call.symbols), a.dtype};
}

static Types infer_real(const InferCall& call) {
  require(!is_complex(call.input(0).dtype), "Op '", call.op().name, "' is not defined for c64.");
  return infer(call);
}

constinit const Op<NoAttrs> add{elementwise_pair("add", infer, true, "a + b; integers wrap.")};
constinit const Op<NoAttrs> sub{elementwise_pair("sub", infer, false, "a - b; integers wrap.")};
constinit const Op<NoAttrs> mul{elementwise_pair("mul", infer, true, "a * b; integers wrap.")};
constinit const Op<NoAttrs> div{elementwise_pair(
    "div", infer, false, "a / b; floats as IEEE, integers truncate toward zero and throw on a zero divisor.")};
constinit const Op<NoAttrs> max{elementwise_pair("max", infer_real, true, "The larger of a and b; NaN wins.")};
constinit const Op<NoAttrs> min{elementwise_pair("min", infer_real, true, "The smaller of a and b; NaN wins.")};
constinit const Op<NoAttrs> pow{elementwise_pair(
    "pow", infer_real, false, "a to the power b as C's pow; a negative base with an integral exponent is defined.")};

constinit const Op<NoAttrs> mod{elementwise_pair(
    "mod", infer_real, false,
    "a - b * floor(a / b), the remainder with the sign of b; integers throw on a zero divisor, floats give NaN.")};
constinit const Op<NoAttrs> fmod{elementwise_pair(
    "fmod", infer_real, false,
    "a - b * trunc(a / b), the remainder with the sign of a; integers throw on a zero divisor, floats give NaN.")};

const Op<NoAttrs>& binary_op(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kAdd: return add;
    case BinaryKind::kSub: return sub;
    case BinaryKind::kMul: return mul;
    case BinaryKind::kDiv: return div;
    case BinaryKind::kMax: return max;
    case BinaryKind::kMin: return min;
    case BinaryKind::kPow: return pow;
  }
  fail(ErrorKind::kInternal, "Unknown binary kind.");
}

}  // namespace rlx::ops

namespace rlx {

Value operator+(const Value& a, const Value& b) { return ops::add(a, b); }
Value operator-(const Value& a, const Value& b) { return ops::sub(a, b); }
Value operator*(const Value& a, const Value& b) { return ops::mul(a, b); }
Value operator/(const Value& a, const Value& b) { return ops::div(a, b); }

}  // namespace rlx
