// The last, partial vector of a row lies at the end of a page that nothing may be read or written behind, on every
// instruction set of this machine: those that the kernels are not compiled for have no masks either.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/tail_test.cpp"
#include <hwy/foreach_target.h>
//
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {

template <class T>
void CheckTailsOf(std::byte* begin, std::byte* end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T loaded[hn::MaxLanes(d)];
  for (int64_t n = 0; n <= lanes; ++n) {
    SCOPED_TRACE(testing::Message() << n << " of " << lanes << " lanes of " << sizeof(T) << " bytes");
    T* p = reinterpret_cast<T*>(end) - n;
    p[-1] = T{5};
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(i + 1);
    hn::Store(load_n(d, p, n, T{99}), d, loaded);
    for (int64_t i = 0; i < lanes; ++i) EXPECT_EQ(loaded[i], static_cast<T>(i < n ? i + 1 : 99)) << i;
    store_n(d, hn::Set(d, T{7}), p, n);
    for (int64_t i = -1; i < n; ++i) EXPECT_EQ(p[i], static_cast<T>(i < 0 ? 5 : 7)) << i;

    // The other way round: the first lanes lie before the page.
    const auto last = hn::Not(hn::FirstN(d, static_cast<size_t>(lanes - n)));
    T* q = reinterpret_cast<T*>(begin) - (lanes - n);
    q[lanes] = T{5};
    for (int64_t i = lanes - n; i < lanes; ++i) q[i] = static_cast<T>(i + 1);
    hn::Store(masked_load(d, last, q), d, loaded);
    for (int64_t i = 0; i < lanes; ++i) EXPECT_EQ(loaded[i], static_cast<T>(i < lanes - n ? 0 : i + 1)) << i;
    masked_store(d, last, hn::Set(d, T{7}), q);
    for (int64_t i = lanes - n; i <= lanes; ++i) EXPECT_EQ(q[i], static_cast<T>(i == lanes ? 5 : 7)) << i;
  }
}

void CheckTails(std::byte* begin, std::byte* end) {
  CheckTailsOf<uint8_t>(begin, end);
  CheckTailsOf<uint16_t>(begin, end);
  CheckTailsOf<int32_t>(begin, end);
  CheckTailsOf<float>(begin, end);
  CheckTailsOf<double>(begin, end);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(CheckTails);

TEST(Tail, TouchesNothingBesideItsElements) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::byte* const begin = static_cast<std::byte*>(pages) + page;
  ASSERT_EQ(mprotect(begin, page, PROT_READ | PROT_WRITE), 0);
  const int64_t all = HWY_TARGETS & (hwy::SupportedTargets() | HWY_EMU128 | HWY_SCALAR);
  for (int64_t left = all; left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    HWY_DYNAMIC_DISPATCH(CheckTails)(begin, begin + page);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  munmap(pages, 3 * page);
}

}  // namespace rlx::cpu
#endif
