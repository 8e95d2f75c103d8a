// What forward and transposed convolutions share about their operands.
#pragma once

#include <span>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "core/thread_pool.h"

namespace rlx::cpu {

inline int64_t align_bytes(int64_t bytes) { return round_up(bytes, 64); }

// Sizes of operands and result, before a run or in one.
struct ConvSizes {
  std::span<const int64_t> x, w, y;
};

// Element i of weights of any small float.
template <class F>
void with_weights(DType dtype, const std::byte* w, const F& f) {
  const auto* bits = reinterpret_cast<const uint16_t*>(w);
  if (dtype == DType::F32)
    f([p = reinterpret_cast<const float*>(w)](int64_t i) { return p[i]; });
  else if (dtype == DType::F16)
    f([bits](int64_t i) { return static_cast<float>(f16_to_double(bits[i])); });
  else
    f([bits](int64_t i) { return static_cast<float>(bf16_to_double(bits[i])); });
}

// F16 and BF16 are converted before anything else; f32 is read where it lies.
inline const float* x_as_f32(const Call& call, float* buffer) {
  const host::View& x = call.input(0);
  if (x.dtype == DType::F32) return reinterpret_cast<const float*>(x.data);
  call.pool().parallel_for(0, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    to_f32(x.dtype, x.data, begin, buffer + begin, end - begin);
  });
  return buffer;
}
inline int64_t x_bytes(DType dtype, std::span<const int64_t> x) {
  return dtype == DType::F32 ? 0 : align_bytes(product(x) * static_cast<int64_t>(sizeof(float)));
}
inline int64_t w_bytes(std::span<const int64_t> w) {
  return align_bytes(product(w) * static_cast<int64_t>(sizeof(float)));
}

}  // namespace rlx::cpu
