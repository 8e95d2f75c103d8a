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

void StreamCopy(const void* source, void* target, int64_t n) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const uint8_t*>(source);
  auto* to = static_cast<uint8_t*>(target);
  const auto line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64);
  int64_t i = std::min<int64_t>(n, line == 0 ? 0 : 64 - line);
  std::memcpy(to, from, static_cast<size_t>(i));
  for (; i + lanes <= n; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(StreamCopy);

void stream_copy(const void* from, void* to, int64_t bytes) { HWY_DYNAMIC_DISPATCH(StreamCopy)(from, to, bytes); }
void stream_flush() { hwy::FlushStream(); }

}  // namespace rlx::cpu
#endif
