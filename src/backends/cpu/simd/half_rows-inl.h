// Rows of F16 or BF16 that are widened in their first pass and narrowed in their last one. Included after
// hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_HALF_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_HALF_ROWS_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_HALF_ROWS_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_HALF_ROWS_INL_H_
#endif

#include <cstring>

#include "backends/cpu/simd/half-inl.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kBf16, class D>
HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<HalfBits<D>> bits) {
  if constexpr (kBf16)
    return bf16_to_f32(d, bits);
  else
    return f16_to_f32(d, bits);
}
template <bool kBf16, class D>
HWY_INLINE hn::Vec<HalfBits<D>> narrow(D d, hn::Vec<D> v) {
  if constexpr (kBf16)
    return f32_to_bf16(d, v);
  else
    return f32_to_f16(d, v);
}

// to = x in f32. On the way every vector goes into a or b = step(a or b, vector); `other` (bits) stands in lanes behind
// the end.
template <bool kBf16, class V, class Step>
HWY_INLINE void widen_row(const uint16_t* x, int64_t n, float* to, uint16_t other, V& a, V& b, Step step) {
  const hn::ScalableTag<float> d;
  const HalfBits<decltype(d)> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V v = widen<kBf16>(d, hn::LoadU(h, x + i)), w = widen<kBf16>(d, hn::LoadU(h, x + i + lanes));
    hn::StoreU(v, d, to + i);
    hn::StoreU(w, d, to + i + lanes);
    a = step(a, v);
    b = step(b, w);
  }
  for (; i < n; i += lanes) {
    HWY_ALIGN uint16_t last[hn::MaxLanes(d)];
    for (uint16_t& bits : last) bits = other;
    const int64_t left = n - i < lanes ? n - i : lanes;
    std::memcpy(last, x + i, static_cast<size_t>(left) * 2);
    const V v = widen<kBf16>(d, hn::Load(h, last));
    store_n(d, v, to + i, left);
    a = step(a, v);
  }
}

// y[i...] = f(i, how many elements are left) narrowed. `stream`: past the caches; y is then at the beginning of a cache
// line. f may read from y's own memory what stands at or behind 2 i.
template <bool kBf16, class F>
HWY_INLINE void narrow_row(uint16_t* y, int64_t n, bool stream, F f) {
  const hn::ScalableTag<float> d;
  const HalfBits<decltype(d)> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint16_t> both;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = narrow<kBf16>(d, f(i, lanes)), high = narrow<kBf16>(d, f(i + lanes, lanes));
    if (stream)
      hn::Stream(hn::Combine(both, high, low), both, y + i);
    else
      hn::StoreU(hn::Combine(both, high, low), both, y + i);
  }
#endif
  (void)stream;
  for (; i + lanes <= n; i += lanes) hn::StoreU(narrow<kBf16>(d, f(i, lanes)), h, y + i);
  if (i == n) return;
  HWY_ALIGN uint16_t last[hn::MaxLanes(d)];
  hn::Store(narrow<kBf16>(d, f(i, n - i)), h, last);
  std::memcpy(y + i, last, static_cast<size_t>(n - i) * 2);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
