// Element-wise ops of one operand. Each kind is an op of its own; epilogues and regions name a kind.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// The one id of a kind, in kernels, epilogues and regions alike (spec 10, 4.2), after kNone.
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

}  // namespace rlx::ops
