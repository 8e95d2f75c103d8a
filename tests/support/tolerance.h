// How close a backend must come to the oracle: the one table of spec 30, 23.
#pragma once

#include <span>

#include "rlx/op.h"
#include "support/op_cases.h"

namespace rlx::test {

// Are the op's results exact, down to the sign of a zero?
bool is_exact(const OpDef& op);

// For result `index` of the op on these operands; the oracle's result tells the dtype and the size.
Tolerance tolerance_of(const OpDef& op, const Attrs& attrs, std::span<const Tensor> inputs, const Tensor& expected);

}  // namespace rlx::test
