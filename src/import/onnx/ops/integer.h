// Quantised arithmetic, composed: bytes with scales and zero points.
#pragma once

#include "import/onnx/node.h"
#include "rlx/ops.h"

namespace rlx::onnx {

struct IntegerOperand {
  Value x;                    // I8 or U8
  std::optional<Value> zero;  // of x's dtype; absent: 0
};

// The matrix product of what the bytes stand for, exact in I32. A zero point is one number, or one per column of b.
Value integer_product(OnnxNode& n, const IntegerOperand& a, const IntegerOperand& b);

// (x - zero) * scale in F32.
Value dequantized(const IntegerOperand& a, const Value& scale);
// round(x / scale) + zero, ties to even, as near as `dtype` comes to it.
Value quantized(const Value& x, const Value& scale, const std::optional<Value>& zero, DType dtype);

}  // namespace rlx::onnx
