// Element-wise comparisons, broadcast as NumPy does; the result is Bool. Operands have one dtype.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// Ids as epilogues, regions and the reference's dumps number them.
enum class CompareKind : int32_t { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr auto names_of(CompareKind) { return std::array<std::string_view, 6>{"eq", "ne", "lt", "le", "gt", "ge"}; }

extern const Op<NoAttrs> eq;
extern const Op<NoAttrs> ne;
extern const Op<NoAttrs> lt;
extern const Op<NoAttrs> le;
extern const Op<NoAttrs> gt;
extern const Op<NoAttrs> ge;

const Op<NoAttrs>& compare_op(CompareKind kind);

}  // namespace rlx::ops
