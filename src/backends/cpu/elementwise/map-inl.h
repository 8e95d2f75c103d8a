// Loops over one block for the step functions. Included after hwy/highway.h.
#if defined(RLX_BACKENDS_CPU_ELEMENTWISE_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_BACKENDS_CPU_ELEMENTWISE_MAP_INL_H_
#undef RLX_BACKENDS_CPU_ELEMENTWISE_MAP_INL_H_
#else
#define RLX_BACKENDS_CPU_ELEMENTWISE_MAP_INL_H_
#endif

#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Past the caches or not; streamed ones go to addresses that are multiples of a vector.
template <bool kStreamed, class D, class V = hn::Vec<D>>
HWY_INLINE void store(D d, V v, hn::TFromD<D>* p) {
  if constexpr (kStreamed)
    hn::Stream(v, d, p);
  else
    hn::StoreU(v, d, p);
}

// out[i] = f(d, a[i], ...) for lanes of one size: A is what the operands hold, R the result. Operand and result may be
// the same bytes: vector i is read before it is written. Lanes behind the end compute with 1.
template <class A, class R, bool kStreamed = false, class F>
HWY_INLINE void map1(const void* const* in, void* out, int64_t n, F f) {
  const hn::ScalableTag<A> d;
  const hn::Rebind<R, decltype(d)> dr;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const A* a = static_cast<const A*>(in[0]);
  R* y = static_cast<R*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store<kStreamed>(dr, f(d, hn::LoadU(d, a + i)), y + i);
  if (i < n) store_n(dr, f(d, load_n(d, a + i, n - i, A{1})), y + i, n - i);
}

template <class A, class R, bool kStreamed = false, class F>
HWY_INLINE void map2(const void* const* in, void* out, int64_t n, F f) {
  const hn::ScalableTag<A> d;
  const hn::Rebind<R, decltype(d)> dr;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const A *a = static_cast<const A*>(in[0]), *b = static_cast<const A*>(in[1]);
  R* y = static_cast<R*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store<kStreamed>(dr, f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), y + i);
  if (i < n) store_n(dr, f(d, load_n(d, a + i, n - i, A{1}), load_n(d, b + i, n - i, A{1})), y + i, n - i);
}

// 1 where the mask of d's lanes is set, else 0, as i32.
template <class D, class M>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> as_bool(D d, M mask) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(di, hn::IfThenElseZero(mask, hn::BitCast(d, hn::Set(di, 1))));
}

template <class D, class M>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> is_false(D d, M mask) {
  const hn::RebindToSigned<D> di;
  return hn::Xor(as_bool(d, mask), hn::Set(di, 1));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// A step function by an expression in d and x, or d, a and b; the second kind can stream f32 results.
#ifndef RLX_STEP1
#define RLX_STEP1(name, A, R, expression)                  \
  void name(const void* const* in, void* out, int64_t n) { \
    map1<A, R>(in, out, n, [](auto d, auto x) HWY_ATTR {   \
      (void)d;                                             \
      return expression;                                   \
    });                                                    \
  }
#define RLX_STEP2(name, A, R, expression)                        \
  void name(const void* const* in, void* out, int64_t n) {       \
    map2<A, R>(in, out, n, [](auto d, auto a, auto b) HWY_ATTR { \
      (void)d;                                                   \
      return expression;                                         \
    });                                                          \
  }
#define RLX_STREAMING_STEP1(name, expression)                               \
  template <bool kStreamed>                                                 \
  void name(const void* const* in, void* out, int64_t n) {                  \
    map1<float, float, kStreamed>(in, out, n, [](auto d, auto x) HWY_ATTR { \
      (void)d;                                                              \
      return expression;                                                    \
    });                                                                     \
  }
#define RLX_STREAMING_STEP2(name, expression)                                       \
  template <bool kStreamed>                                                         \
  void name(const void* const* in, void* out, int64_t n) {                          \
    map2<float, float, kStreamed>(in, out, n, [](auto d, auto a, auto b) HWY_ATTR { \
      (void)d;                                                                      \
      return expression;                                                            \
    });                                                                             \
  }
#endif
