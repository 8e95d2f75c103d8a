// Loads and stores of the last, partial vector of a row. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_TAIL_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_TAIL_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_TAIL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first n elements at p, `other` in the remaining lanes. Touches no memory behind the n-th.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_n(D d, const T* p, int64_t n, T other) {
  if (n >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, other));
}

template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void store_n(D d, V v, T* p, int64_t n) {
  if (n >= static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, p);
  else
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, p);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
