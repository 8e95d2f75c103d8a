// Exact products of bytes with zero points, in 32 bits. Zero points are operands of the type of what they belong to; a
// missing one is 0. Sums wrap.
#pragma once

#include "rlx/ops/conv.h"

namespace rlx::ops {

// a [..., M, K], b [..., K, N], I8 or U8 each; the zero point of a is one number, [M] or [..., M, 1], that of b one
// number, [N] or [..., 1, N].
extern const Op<NoAttrs> matmul_integer;  // (a, b, optional a_zero, optional b_zero)

// x and w as of conv, I8 or U8 each; the zero point of x is one number, that of w one number or [Cout]. Padding has the
// value of x's zero point.
extern const Op<ConvAttrs> conv_integer;  // (x, w, optional x_zero, optional w_zero)

}  // namespace rlx::ops
