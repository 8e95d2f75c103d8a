#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/stream.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/simd/stream.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void StreamCopy(const float* from, float* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64 / sizeof(float));
  int64_t i = std::min(n, line == 0 ? 0 : 16 - line);
  std::memcpy(to, from, static_cast<size_t>(i) * sizeof(float));
  for (; i + lanes <= n; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(n - i) * sizeof(float));
  hwy::FlushStream();  // such stores are not ordered by the synchronisation between threads
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(StreamCopy);

void stream_copy(const float* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(StreamCopy)(from, to, n); }

}  // namespace rlx::cpu
#endif
