// Bits of integers, broadcast as NumPy does; of Bool the logical and, or, xor and not. Operands have one dtype.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

extern const Op<NoAttrs> bit_and;
extern const Op<NoAttrs> bit_or;
extern const Op<NoAttrs> bit_xor;
extern const Op<NoAttrs> bit_not;

// (x, count), integers only. A count that is negative or not below the width shifts all bits out.
extern const Op<NoAttrs> shift_left;
extern const Op<NoAttrs> shift_right;  // fills with zeros, with the sign where the dtype has one

}  // namespace rlx::ops
