// Element-wise ops of two operands, broadcast as NumPy does. Operands have one dtype: builders and importers insert
// casts.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// Ids as epilogues, regions and the reference's dumps number them.
enum class BinaryKind : int32_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kPow };
constexpr auto names_of(BinaryKind) {
  return std::array<std::string_view, 7>{"add", "sub", "mul", "div", "max", "min", "pow"};
}

extern const Op<NoAttrs> add;
extern const Op<NoAttrs> sub;
extern const Op<NoAttrs> mul;
extern const Op<NoAttrs> div;
extern const Op<NoAttrs> max;
extern const Op<NoAttrs> min;
extern const Op<NoAttrs> pow;

// The remainder of a division; no kinds, so no epilogue names them.
extern const Op<NoAttrs> mod;   // of a floored quotient, with the sign of b
extern const Op<NoAttrs> fmod;  // of a truncated quotient, with the sign of a

const Op<NoAttrs>& binary_op(BinaryKind kind);

}  // namespace rlx::ops

namespace rlx {

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);

}  // namespace rlx
