#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/convert.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cstring>

#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/half-inl.h"
#include "rlx/error.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U16 = HalfBits<F32>;

// A vector of n < Lanes elements goes through a buffer, so that the loops below have one body.
template <class Load, class Store>
HWY_INLINE void for_each_vector(int64_t n, int64_t from_size, int64_t to_size, const void* from, void* to, Load load,
                                Store store) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const char*>(from);
  auto* out = static_cast<char*>(to);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(load(in + i * from_size), out + i * to_size);
  if (i >= n) return;
  HWY_ALIGN char a[hn::MaxLanes(F32()) * 4] = {};
  HWY_ALIGN char b[hn::MaxLanes(F32()) * 4];
  std::memcpy(a, in + i * from_size, static_cast<size_t>((n - i) * from_size));
  store(load(a), b);
  std::memcpy(out + i * to_size, b, static_cast<size_t>((n - i) * to_size));
}

void F16ToF32(const void* from, float* to, int64_t n) {
  const F32 d;
  const U16 h;
  for_each_vector(
      n, 2, 4, from, to,
      [&](const char* p) HWY_ATTR { return f16_to_f32(d, hn::LoadU(h, reinterpret_cast<const uint16_t*>(p))); },
      [&](auto v, char* p) HWY_ATTR { hn::StoreU(v, d, reinterpret_cast<float*>(p)); });
}

void F32ToF16(const float* from, void* to, int64_t n) {
  const F32 d;
  const U16 h;
  for_each_vector(
      n, 4, 2, from, to, [&](const char* p) HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const float*>(p)); },
      [&](auto v, char* p) HWY_ATTR { hn::StoreU(f32_to_f16(d, v), h, reinterpret_cast<uint16_t*>(p)); });
}

void BF16ToF32(const void* from, float* to, int64_t n) {
  const F32 d;
  const U16 h;
  for_each_vector(
      n, 2, 4, from, to,
      [&](const char* p) HWY_ATTR { return bf16_to_f32(d, hn::LoadU(h, reinterpret_cast<const uint16_t*>(p))); },
      [&](auto v, char* p) HWY_ATTR { hn::StoreU(v, d, reinterpret_cast<float*>(p)); });
}

void F32ToBF16(const float* from, void* to, int64_t n) {
  const F32 d;
  const U16 h;
  for_each_vector(
      n, 4, 2, from, to, [&](const char* p) HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const float*>(p)); },
      [&](auto v, char* p) HWY_ATTR { hn::StoreU(f32_to_bf16(d, v), h, reinterpret_cast<uint16_t*>(p)); });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(F16ToF32);
HWY_EXPORT(F32ToF16);
HWY_EXPORT(BF16ToF32);
HWY_EXPORT(F32ToBF16);

void to_f32(DType dtype, const std::byte* from, int64_t offset, float* to, int64_t n) {
  switch (dtype) {
    case DType::F32: std::memcpy(to, from + offset * 4, static_cast<size_t>(n) * 4); return;
    case DType::F16: HWY_DYNAMIC_DISPATCH(F16ToF32)(from + offset * 2, to, n); return;
    case DType::BF16: HWY_DYNAMIC_DISPATCH(BF16ToF32)(from + offset * 2, to, n); return;
    default: RLX_ASSERT(false && "only F32, F16 and BF16 convert here");
  }
}

void from_f32(DType dtype, const float* from, std::byte* to, int64_t offset, int64_t n) {
  switch (dtype) {
    case DType::F32: std::memcpy(to + offset * 4, from, static_cast<size_t>(n) * 4); return;
    case DType::F16: HWY_DYNAMIC_DISPATCH(F32ToF16)(from, to + offset * 2, n); return;
    case DType::BF16: HWY_DYNAMIC_DISPATCH(F32ToBF16)(from, to + offset * 2, n); return;
    default: RLX_ASSERT(false && "only F32, F16 and BF16 convert here");
  }
}

}  // namespace rlx::cpu
#endif
