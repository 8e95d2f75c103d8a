// For decompositions: kernels compute f16 and bf16 in a wider type and round once, so their definitions do too.
#pragma once

#include "rlx/graph.h"
#include "rlx/ops/cast.h"

namespace rlx::ops {

inline Value as_dtype(const Value& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, {.to = dtype}); }

// f16 and bf16 as f32, other values as they are.
inline Values in_f32(std::span<const Value> values) {
  Values out;
  for (const Value& v : values)
    out.push_back(v.dtype() == DType::F16 || v.dtype() == DType::BF16 ? as_dtype(v, DType::F32) : v);
  return out;
}

// A number in x's dtype.
inline Value scalar_like(const Value& x, double number) {
  return x.graph().constant(Tensor::from_doubles(x.dtype(), {}, {&number, 1}));
}

}  // namespace rlx::ops
