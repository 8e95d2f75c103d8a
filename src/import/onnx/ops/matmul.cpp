// MatMul and Gemm.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// NumPy's matmul: vectors are rows on the left, columns on the right, and the axis added for them goes again.
Built matmul(OnnxNode& n) {
  Value a = n.input(0), b = n.input(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = unsqueeze(a, {0});
  if (column) b = unsqueeze(b, {1});
  Value y = ops::matmul(a, b);
  if (column) y = squeeze(y, {-1});
  if (row) y = squeeze(y, {column ? -1 : -2});
  return y;
}

Value scaled(OnnxNode& n, const Value& x, float factor) { return factor == 1.0f ? x : x * scalar_like(n, x, factor); }

Built gemm(OnnxNode& n) {
  Value a = n.input(0), b = n.input(1);
  if (n.opset() < 7 && a.shape().rank() > 2) a = as_matrix(n.graph(), a, 1);
  if (n.attr("transA", false)) a = swap_last_two(a);
  if (n.attr("transB", false)) b = swap_last_two(b);
  const Value product = scaled(n, ops::matmul(a, b), n.attr("alpha", 1.0f));
  const float beta = n.attr("beta", 1.0f);
  if (!n.has(2) || beta == 0.0f) return product;
  return product + scaled(n, n.input(2), beta);
}

}  // namespace

Rows matmul_rows() {
  return {
      {"Gemm", 1, gemm},
      {"MatMul", 1, matmul},
  };
}

}  // namespace rlx::onnx
