// Type rules that several ops share.
#pragma once

#include "rlx/op.h"

namespace rlx::ops {

// The first operand's type.
inline Types same_as_input(const InferCall& call) { return call.input(0); }

void require_float(const TensorType& type, std::string_view what = "Operand");
void require_index(const TensorType& type, std::string_view what);  // I32 or I64
void require_dtype(const TensorType& type, DType dtype, std::string_view what);
void require_ordered(const TensorType& type);  // floats and integers
void require_index_dtype(DType dtype);         // of an attribute that chooses it
void require_same_dtype(const TensorType& a, const TensorType& b);
void require_rank(const TensorType& type, int64_t rank, std::string_view what);
// Equal sizes, or one of them a symbol and the other a number (known only when bound).
void require_same_dim(const Dim& a, const Dim& b, std::string_view what);
void require_shape(const TensorType& type, const Shape& shape, std::string_view what);
// Same rank, and no size but the axis's is larger than `outer`'s, as far as that is known.
void require_within(const TensorType& type, const TensorType& outer, int64_t axis, std::string_view what);
// How many axes the last axis of `indices` indexes: at most `rank`.
int64_t index_depth(const TensorType& indices, int64_t rank);

// The record of an element-wise op of two broadcast operands.
constexpr OpDef elementwise_pair(std::string_view name, Types (*rule)(const InferCall&), bool commutative,
                                 std::string_view doc) {
  return {.name = name,
          .category = "Elementwise",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = rule,
          .traits = {.elementwise = true, .commutative = commutative, .in_place = 0b11},
          .doc = doc};
}

// mixes_axis of an op whose attribute struct has a single `axis`.
template <class A>
bool mixes_attr_axis(const Attrs& attrs, int64_t rank, int64_t axis) {
  return normalize_axis(attrs.as<A>().axis, rank) == axis;
}

}  // namespace rlx::ops
