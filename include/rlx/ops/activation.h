// Element-wise ops of one operand. Each kind is an op of its own; epilogues and regions name a kind.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// The one numbering of a kind, in kernels, epilogues and regions alike. An epilogue may have no activation, which is
// kNone = 0, so every kind is one more than its id in the table of spec 10, 4.2: spec_id() gives that.
enum class ActivationKind : int32_t {
  kNone = 0,
  kRelu,
  kSigmoid,
  kTanh,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kNeg,
  kAbs,
  kGelu,
  kSilu,
  kGeluApprox,
  kRound,
  kSin,
  kCos,
  kTan,
  kAtan
};
constexpr auto names_of(ActivationKind) {
  return std::array<std::string_view, 18>{"none",        "relu",  "sigmoid", "tanh", "exp",  "log",
                                          "sqrt",        "rsqrt", "neg",     "abs",  "gelu", "silu",
                                          "gelu_approx", "round", "sin",     "cos",  "tan",  "atan"};
}
// The id in the table of spec 10, 4.2, for dumps and importers that use it: relu is 0. kNone has none and gives -1.
constexpr int32_t spec_id(ActivationKind kind) { return static_cast<int32_t>(kind) - 1; }

extern const Op<NoAttrs> relu;
extern const Op<NoAttrs> sigmoid;
extern const Op<NoAttrs> tanh;
extern const Op<NoAttrs> exp;
extern const Op<NoAttrs> log;
extern const Op<NoAttrs> sqrt;
extern const Op<NoAttrs> rsqrt;
extern const Op<NoAttrs> neg;
extern const Op<NoAttrs> abs;
extern const Op<NoAttrs> gelu;
extern const Op<NoAttrs> silu;
extern const Op<NoAttrs> gelu_approx;
extern const Op<NoAttrs> round;
extern const Op<NoAttrs> sin;
extern const Op<NoAttrs> cos;
extern const Op<NoAttrs> tan;
extern const Op<NoAttrs> atan;

// The op of a kind; kNone has none and throws.
const Op<NoAttrs>& activation_op(ActivationKind kind);
// The value after an epilogue: x itself for kNone.
Value activate(const Value& x, ActivationKind kind);

}  // namespace rlx::ops

namespace rlx {

Value operator-(const Value& x);

}  // namespace rlx
