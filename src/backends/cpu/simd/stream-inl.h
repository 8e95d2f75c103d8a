// Rows that are computed straight into memory. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_STREAM_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_STREAM_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_STREAM_INL_H_
#endif

#include <algorithm>

#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[i...] = f(i, how many elements are left), a vector at a time; past the caches where `stream` says so (a
// stream_flush follows). All but the ends are whole vectors.
template <class F>
HWY_INLINE void store_row(float* y, int64_t n, bool stream, F f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (stream) {
    const auto line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % 64 / sizeof(float));
    const int64_t head = std::min<int64_t>(n, line == 0 ? 0 : 16 - line);
    for (; i < head; i += std::min(lanes, head - i)) store_n(d, f(i, head - i), y + i, head - i);
    for (; i + lanes <= n; i += lanes) hn::Stream(f(i, lanes), d, y + i);
  } else {
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(i, lanes), d, y + i);
  }
  if (i < n) store_n(d, f(i, n - i), y + i, n - i);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
