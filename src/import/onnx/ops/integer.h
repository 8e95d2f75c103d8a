// Products of bytes, as several families of builders use them.
#pragma once

#include "import/onnx/node.h"

namespace rlx::onnx {

// NumPy's matmul of what the codes stand for, exact in I32. A zero point is one number, or one per row of a or column
// of b; absent: 0.
Value matmul_integer_of(OnnxNode& n, Value a, Value b, const std::optional<Value>& a_zero,
                        const std::optional<Value>& b_zero);

}  // namespace rlx::onnx
