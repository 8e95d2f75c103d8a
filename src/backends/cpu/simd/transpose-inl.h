// A tile of 32-bit elements turned over, four by four. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#undef RLX_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#else
#define RLX_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Stages of interleaving: each takes row i and row i + n / 2 to rows 2i and 2i + 1, and log2(n) of them transpose the
// n x n tile that n vectors of 16 bytes are.
template <size_t kStages, size_t kRows, class D>
HWY_INLINE void interleave_stages(D d, hn::Vec<D> (&v)[kRows]) {
  if constexpr (kStages > 0) {
    hn::Vec<D> next[kRows];
    for (size_t i = 0; i < kRows / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kRows / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kRows / 2]);
    }
    for (size_t i = 0; i < kRows; ++i) v[i] = next[i];
    interleave_stages<kStages - 1>(d, v);
  }
}
#endif

// dst[c][r] = src[r][c] for a square tile of 16 bytes a side; strides in bytes.
template <class T>
HWY_INLINE void transpose_square(const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  constexpr size_t kSide = 16 / sizeof(T);
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<T> d;
  hn::Vec<hn::Full128<T>> v[kSide];
  for (size_t i = 0; i < kSide; ++i)
    v[i] = hn::LoadU(d, reinterpret_cast<const T*>(src + static_cast<int64_t>(i) * src_stride));
  interleave_stages<hwy::CeilLog2(kSide)>(d, v);
  for (size_t i = 0; i < kSide; ++i)
    hn::StoreU(v[i], d, reinterpret_cast<T*>(dst + static_cast<int64_t>(i) * dst_stride));
#else
  for (size_t r = 0; r < kSide; ++r)
    for (size_t c = 0; c < kSide; ++c)
      reinterpret_cast<T*>(dst + static_cast<int64_t>(c) * dst_stride)[r] =
          reinterpret_cast<const T*>(src + static_cast<int64_t>(r) * src_stride)[c];
#endif
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
