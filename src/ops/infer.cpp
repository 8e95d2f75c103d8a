#include "ops/infer.h"

namespace rlx::ops {

void require_float(const TensorType& type, std::string_view what) {
  require(is_float(type.dtype), what, " dtype (", type.dtype, ") is not a float type.");
}

void require_index(const TensorType& type, std::string_view what) {
  require(is_index(type.dtype), what, " dtype (", type.dtype, ") is not i32 or i64.");
}

void require_dtype(const TensorType& type, DType dtype, std::string_view what) {
  require(type.dtype == dtype, what, " dtype (", type.dtype, ") is not ", dtype, ".");
}

void require_ordered(const TensorType& type) {
  require(is_float(type.dtype) || is_int(type.dtype), "Operand dtype (", type.dtype, ") has no order; cast it.");
}

void require_index_dtype(DType dtype) { require(is_index(dtype), "Index dtype (", dtype, ") is not i32 or i64."); }

void require_same_dtype(const TensorType& a, const TensorType& b) {
  require(a.dtype == b.dtype, "Operand dtypes (", a.dtype, ", ", b.dtype, ") differ; cast one of them.");
}

void require_rank(const TensorType& type, int64_t rank, std::string_view what) {
  require(type.rank() == rank, what, " rank (", type.rank(), ") is not ", rank, ".");
}

void require_same_dim(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return;
  require(a.is_static() != b.is_static(), what, " (", a, " and ", b, ") differ.");
}

void require_shape(const TensorType& type, const Shape& shape, std::string_view what) {
  bool same = type.rank() == shape.rank();
  for (int64_t i = 0; same && i < shape.rank(); ++i)
    same = type.dim(i) == shape[i] || type.dim(i).is_static() != shape[i].is_static();
  require(same, what, " shape (", type.shape, ") is not ", shape, ".");
}

void require_within(const TensorType& type, const TensorType& outer, int64_t axis, std::string_view what) {
  for (int64_t a = 0; a < type.rank(); ++a) {
    const Dim &own = type.dim(a), &limit = outer.dim(a);
    const bool comparable = own.scale() == limit.scale() && (own.is_static() || own.symbol_id() == limit.symbol_id());
    require(a == axis || !comparable || own.offset() <= limit.offset(), what, " shape (", type.shape,
            ") is larger than ", outer.shape, " along axis ", a, ".");
  }
}

int64_t index_depth(const TensorType& indices, int64_t rank) {
  const Dim& depth = indices.dim(indices.rank() - 1);
  require(depth.is_static(), "Last size (", depth, ") of the indices is not a number.");
  require(depth.value() <= rank, "Indices of (", depth, ") numbers are more than the ", rank, " axes.");
  return depth.value();
}

}  // namespace rlx::ops
