// Element-wise functions and tests of one operand that are no activation kinds: no epilogue names them, and there is no
// rule for their derivatives.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> erf;
extern const Op<NoAttrs> floor;
extern const Op<NoAttrs> ceil;
extern const Op<NoAttrs> sign;  // floats and integers
extern const Op<NoAttrs> asin;
extern const Op<NoAttrs> acos;
extern const Op<NoAttrs> sinh;
extern const Op<NoAttrs> cosh;
extern const Op<NoAttrs> asinh;
extern const Op<NoAttrs> acosh;
extern const Op<NoAttrs> atanh;

// Tests of floats; the result is Bool.
extern const Op<NoAttrs> is_nan;
struct IsInfAttrs {
  bool detect_positive = true;
  bool detect_negative = true;
  static constexpr auto fields = std::tuple{field("detect_positive", &IsInfAttrs::detect_positive),
                                            field("detect_negative", &IsInfAttrs::detect_negative)};
};
extern const Op<IsInfAttrs> is_inf;

}  // namespace rlx::ops
