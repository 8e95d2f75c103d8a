// Pairs of f32 steps in one pass over a block. No fused multiply-add: the result is that of the two steps.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/pair_steps.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <utility>

#include "backends/cpu/elementwise/micro.h"
#include "backends/cpu/simd/tail-inl.h"

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

template <int kPair>
void Pair(const void* const* in, void* out, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]),
              *c = static_cast<const float*>(in[2]);
  float* y = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = first_of<kPair / 5>(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(second_of<kPair % 5>(d, x, hn::LoadU(d, c + i)), d, y + i);
  }
  if (i < n) {
    const auto x = first_of<kPair / 5>(load_n(d, a + i, n - i, 1.0f), load_n(d, b + i, n - i, 1.0f));
    store_n(d, second_of<kPair % 5>(d, x, load_n(d, c + i, n - i, 1.0f)), y + i, n - i);
  }
}

template <int... kPairs>
StepFn find_pair(int pair, std::integer_sequence<int, kPairs...>) {
  static constexpr StepFn kTable[] = {Pair<kPairs>...};
  return kTable[pair];
}

StepFn PairStep(Micro micro) {
  return find_pair(static_cast<int>(micro) - static_cast<int>(Micro::kPairF), std::make_integer_sequence<int, 15>());
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(PairStep);
StepFn pair_step(Micro micro) { return HWY_DYNAMIC_DISPATCH(PairStep)(micro); }

}  // namespace rlx::cpu
#endif
