// Rows of F32, F16 or BF16 as f32 and back, vectorised. Kernels compute in f32 and round once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

// n elements from element `offset` on.
void to_f32(DType dtype, const std::byte* from, int64_t offset, float* to, int64_t n);
void from_f32(DType dtype, const float* from, std::byte* to, int64_t offset, int64_t n);

// The row itself where it is f32, else a converted copy in `buffer`.
inline const float* row_as_f32(DType dtype, const std::byte* data, int64_t offset, float* buffer, int64_t n) {
  if (dtype == DType::F32) return reinterpret_cast<const float*>(data) + offset;
  to_f32(dtype, data, offset, buffer, n);
  return buffer;
}

}  // namespace rlx::cpu
