#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/random.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "backends/cpu/simd/random.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::ScalableTag<uint32_t>;
using V = hn::Vec<U32>;

template <int kA, int kB, int kC, int kD>
HWY_INLINE void rounds(V& x0, V& x1) {
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::RotateRight<32 - kA>(x1), x0);
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::RotateRight<32 - kB>(x1), x0);
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::RotateRight<32 - kC>(x1), x0);
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::RotateRight<32 - kD>(x1), x0);
}

void ThreefryWords(uint32_t row, uint32_t first, U32x2 key, uint32_t* words, int64_t n) {
  const U32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  for (int64_t i = 0; i < n; i += lanes) {
    V x0 = hn::Set(d, row + ks[0]);
    V x1 = hn::Add(hn::Iota(d, first + static_cast<uint32_t>(i)), hn::Set(d, ks[1]));
    for (uint32_t group = 1; group <= 5; ++group) {
      if (group % 2 == 1)
        rounds<13, 15, 26, 6>(x0, x1);
      else
        rounds<17, 29, 16, 24>(x0, x1);
      x0 = hn::Add(x0, hn::Set(d, ks[group % 3]));
      x1 = hn::Add(x1, hn::Set(d, ks[(group + 1) % 3] + group));
    }
    store_n(d, x0, words + i, n - i);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(ThreefryWords);

void threefry_words(uint32_t row, uint32_t first, U32x2 key, uint32_t* words, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ThreefryWords)(row, first, key, words, n);
}

}  // namespace rlx::cpu
#endif
