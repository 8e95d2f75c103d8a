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

// Highway's masked loads and stores touch whole vectors where the machine has no masks for the lanes' size: they read
// behind a tensor's end then, and write back what another thread may just have written.
template <class T>
constexpr bool masks_memory() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return true;
#elif HWY_TARGET == HWY_AVX2
  return sizeof(T) >= 4;
#else
  return false;
#endif
}

// The lanes of the mask from memory, zero in the others; touches no other memory.
template <class D, class M, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> masked_load(D d, M mask, const T* p) {
  if constexpr (masks_memory<T>()) {
    return hn::MaskedLoad(mask, d, p);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    uint8_t bits[hn::MaxLanes(d) / 8 + 8];
    hn::StoreMaskBits(d, mask, bits);
    for (size_t i = 0; i < hn::Lanes(d); ++i)
      if (bits[i / 8] >> i % 8 & 1) lanes[i] = p[i];
    return hn::Load(d, lanes);
  }
}

template <class D, class M, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void masked_store(D d, M mask, V v, T* p) {
  if constexpr (masks_memory<T>()) {
    hn::BlendedStore(v, mask, d, p);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    uint8_t bits[hn::MaxLanes(d) / 8 + 8];
    hn::Store(v, d, lanes);
    hn::StoreMaskBits(d, mask, bits);
    for (size_t i = 0; i < hn::Lanes(d); ++i)
      if (bits[i / 8] >> i % 8 & 1) p[i] = lanes[i];
  }
}

// The first n elements at p, `other` in the remaining lanes. Touches no memory behind the n-th.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_n(D d, const T* p, int64_t n, T other) {
  if (n >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  return hn::IfThenElse(mask, masked_load(d, mask, p), hn::Set(d, other));
}

template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void store_n(D d, V v, T* p, int64_t n) {
  if (n >= static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, p);
  else
    masked_store(d, hn::FirstN(d, static_cast<size_t>(n)), v, p);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
