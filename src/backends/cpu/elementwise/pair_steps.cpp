// Pairs of f32 steps in one pass over a block. No fused multiply-add: the result is that of the two steps.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/pair_steps.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <utility>

#include "backends/cpu/elementwise/map-inl.h"
#include "backends/cpu/elementwise/micro.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kFirst, class V>
HWY_INLINE V first_of(V a, V b) {
  if constexpr (kFirst == 0) return hn::Add(a, b);
  if constexpr (kFirst == 1) return hn::Sub(a, b);
  if constexpr (kFirst == 2) return hn::Mul(a, b);
}

template <int kSecond, class D, class V>
HWY_INLINE V second_of(D d, V x, V c) {
  if constexpr (kSecond == 0) return hn::Add(x, c);
  if constexpr (kSecond == 1) return hn::Sub(x, c);
  if constexpr (kSecond == 2) return hn::Sub(c, x);
  if constexpr (kSecond == 3) return hn::Mul(x, c);
  if constexpr (kSecond == 4) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
}

template <int kPair, class D, class V = hn::Vec<D>>
HWY_INLINE V both_of(D d, V a, V b, V c) {
  const V y = second_of<kPair % kPairs % 5>(d, first_of<kPair % kPairs / 5>(a, b), c);
  if constexpr (kPair >= kPairs) return second_of<4>(d, y, c);
  return y;
}

template <int kPair, bool kStreamed>
void Pair(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]),
              *c = static_cast<const float*>(in[2]);
  float* y = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store<kStreamed>(d, both_of<kPair>(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), y + i);
  if (i < n) {
    const auto tail = [&](const float* p) HWY_ATTR { return load_n(d, p + i, n - i, 1.0f); };
    store_n(d, both_of<kPair>(d, tail(a), tail(b), tail(c)), y + i, n - i);
  }
}

template <bool kStreamed, int... kAll>
StepFn find_pair(Micro micro, std::integer_sequence<int, kAll...>) {
  static constexpr StepFn kTable[] = {Pair<kAll, kStreamed>...};
  return kTable[static_cast<int>(micro) - static_cast<int>(Micro::kPairF)];
}

StepFn PairStep(Micro micro) { return find_pair<false>(micro, std::make_integer_sequence<int, 2 * kPairs>()); }
StepFn PairStreamingStep(Micro micro) { return find_pair<true>(micro, std::make_integer_sequence<int, 2 * kPairs>()); }

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(PairStep);
HWY_EXPORT(PairStreamingStep);
StepFn pair_streaming_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(PairStreamingStep)(micro); }
StepFn pair_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(PairStep)(micro); }

}  // namespace rlx::cpu
#endif
