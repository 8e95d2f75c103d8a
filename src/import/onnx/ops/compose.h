// Small compositions that several families of builders use.
#pragma once

#include "import/onnx/node.h"
#include "rlx/ops.h"

namespace rlx::onnx {

Value cast_to(const Value& x, DType dtype);                    // nothing when it has that dtype
Value scalar_like(OnnxNode& n, const Value& x, double value);  // a constant of x's dtype
Value magnitude(const Value& x);                               // |x|; nothing for integers without a sign
Value reshape_to(const Value& x, std::vector<Dim> shape);      // nothing when it has that shape
void require_rank(const Value& x, int64_t rank, std::string_view what);
Value unsqueeze(const Value& x, std::vector<int64_t> axes);  // axes of the result, any order
Value squeeze(const Value& x, std::vector<int64_t> axes);
Value expand_to(const Value& x, const Shape& shape);
Value swap_last_two(const Value& x);
Value sizes_as_tensor(OnnxNode& n, const std::vector<Dim>& dims);  // I64 [n]; symbols are read at run time
Value size_as_scalar(OnnxNode& n, const Dim& dim);                 // the same, I64 []
Value count_up(OnnxNode& n, const Dim& size);                      // 0, 1, … size - 1: I64 [size]
Value zeros(OnnxNode& n, const Shape& shape, DType dtype);
// Zeros put before and after along one axis.
Value pad_axis(OnnxNode& n, const Value& x, int64_t axis, int64_t before, int64_t after);
// A vector that lies along one axis of a tensor of that rank, for broadcasting.
Value along_axis(const Value& vector, int64_t axis, int64_t rank);
// Element i of the list, counting from the end where negative; throws when out of range.
std::vector<int64_t> normalize_axes(std::vector<int64_t> axes, int64_t rank);
// x as [dims before axis, dims from axis on], for ops that ONNX defines on matrices.
Value as_matrix(Graph& graph, const Value& x, int64_t axis);
// f16 and bf16 computed in f32: `compute` on the widened operand, its result rounded once.
template <class F>
Value in_f32(const Value& x, F compute) {
  const DType d = x.dtype();
  if (d != DType::F16 && d != DType::BF16) return compute(x);
  return cast_to(compute(cast_to(x, DType::F32)), d);
}

}  // namespace rlx::onnx
