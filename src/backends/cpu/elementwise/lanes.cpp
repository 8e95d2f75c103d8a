#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/lanes.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/elementwise/lanes.h"
#include "backends/cpu/simd/convert.h"
#include "rlx/error.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Plain loops: the compiler vectorises changes of size as well as we would.
template <class From, class To, class F>
HWY_INLINE void each(const void* from, void* to, int64_t n, F f) {
  const From* HWY_RESTRICT x = static_cast<const From*>(from);
  To* HWY_RESTRICT y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

void WidenI16(const void* from, void* to, int64_t n) {
  each<int16_t, int32_t>(from, to, n, [](int16_t v) HWY_ATTR { return int32_t{v}; });
}
void WidenI8(const void* from, void* to, int64_t n) {
  each<int8_t, int32_t>(from, to, n, [](int8_t v) HWY_ATTR { return int32_t{v}; });
}
void WidenU8(const void* from, void* to, int64_t n) {
  each<uint8_t, int32_t>(from, to, n, [](uint8_t v) HWY_ATTR { return int32_t{v}; });
}
void WidenU16(const void* from, void* to, int64_t n) {
  each<uint16_t, int32_t>(from, to, n, [](uint16_t v) HWY_ATTR { return int32_t{v}; });
}
void WidenBool(const void* from, void* to, int64_t n) {
  each<uint8_t, int32_t>(from, to, n, [](uint8_t v) HWY_ATTR { return v != 0 ? 1 : 0; });
}
void NarrowTo16(const void* from, void* to, int64_t n) {
  each<int32_t, int16_t>(from, to, n, [](int32_t v) HWY_ATTR { return static_cast<int16_t>(v); });
}
void NarrowTo8(const void* from, void* to, int64_t n) {
  each<int32_t, uint8_t>(from, to, n, [](int32_t v) HWY_ATTR { return static_cast<uint8_t>(v); });
}

void StreamBytes(const void* from, void* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t* x = static_cast<const uint8_t*>(from);
  uint8_t* y = static_cast<uint8_t*>(to);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % static_cast<uintptr_t>(lanes));
  int64_t i = past == 0 ? 0 : std::min(lanes - past, bytes);
  if (i > 0) std::memcpy(y, x, static_cast<size_t>(i));
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, x + i), d, y + i);
  if (i < bytes) std::memcpy(y + i, x + i, static_cast<size_t>(bytes - i));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(WidenI16);
HWY_EXPORT(WidenI8);
HWY_EXPORT(WidenU8);
HWY_EXPORT(WidenU16);
HWY_EXPORT(WidenBool);
HWY_EXPORT(NarrowTo16);
HWY_EXPORT(NarrowTo8);
HWY_EXPORT(StreamBytes);

void load_lanes(DType dtype, const std::byte* from, void* to, int64_t n) {
  switch (dtype) {
    case DType::F32:
    case DType::I32:
    case DType::I64: std::memcpy(to, from, static_cast<size_t>(n) * size_of(dtype)); return;
    case DType::F16:
    case DType::BF16: to_f32(dtype, from, 0, static_cast<float*>(to), n); return;
    case DType::I16: HWY_DYNAMIC_DISPATCH(WidenI16)(from, to, n); return;
    case DType::I8: HWY_DYNAMIC_DISPATCH(WidenI8)(from, to, n); return;
    case DType::U16: HWY_DYNAMIC_DISPATCH(WidenU16)(from, to, n); return;
    case DType::U8: HWY_DYNAMIC_DISPATCH(WidenU8)(from, to, n); return;
    case DType::Bool: HWY_DYNAMIC_DISPATCH(WidenBool)(from, to, n); return;
    default: RLX_ASSERT(false && "a dtype without lanes");
  }
}

void store_lanes(DType dtype, const void* from, std::byte* to, int64_t n) {
  switch (dtype) {
    case DType::F32:
    case DType::I32:
    case DType::I64: std::memcpy(to, from, static_cast<size_t>(n) * size_of(dtype)); return;
    case DType::F16:
    case DType::BF16: from_f32(dtype, static_cast<const float*>(from), to, 0, n); return;
    case DType::U16:
    case DType::I16: HWY_DYNAMIC_DISPATCH(NarrowTo16)(from, to, n); return;
    case DType::I8:
    case DType::U8:
    case DType::Bool: HWY_DYNAMIC_DISPATCH(NarrowTo8)(from, to, n); return;
    default: RLX_ASSERT(false && "a dtype without lanes");
  }
}

void stream_bytes(const void* from, void* to, int64_t bytes) { HWY_DYNAMIC_DISPATCH(StreamBytes)(from, to, bytes); }
void finish_streaming() { hwy::FlushStream(); }

}  // namespace rlx::cpu
#endif
