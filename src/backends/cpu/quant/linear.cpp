#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/linear.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/quant/linear.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using quant::LinearSteps;

using DF = hn::ScalableTag<float>;
using DI = hn::Rebind<int32_t, DF>;

// f(from + i, steps, i, to + i) for whole vectors; the last, partial one goes through buffers.
template <class From, class To, class F>
HWY_INLINE void each_vector(const From* from, int64_t n, const LinearSteps& steps, To* to, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(from + i, steps, i, to + i);
  if (i == n) return;
  constexpr size_t kMax = hn::MaxLanes(DF());
  From a[kMax] = {};
  To b[kMax];
  float scales[kMax];
  int32_t zeros[kMax] = {};
  std::fill(scales, scales + kMax, 1.0f);
  for (int64_t j = 0; j < n - i; ++j) {
    a[j] = from[i + j];
    scales[j] = steps.scale[(i + j) * steps.step];
    zeros[j] = steps.zero[(i + j) * steps.step];
  }
  f(a, LinearSteps{scales, zeros, 1}, 0, b);
  for (int64_t j = 0; j < n - i; ++j) to[i + j] = b[j];
}

HWY_INLINE hn::Vec<DF> scale_at(const LinearSteps& s, int64_t i) {
  return s.step == 0 ? hn::Set(DF(), *s.scale) : hn::LoadU(DF(), s.scale + i);
}
HWY_INLINE hn::Vec<DI> zero_at(const LinearSteps& s, int64_t i) {
  return s.step == 0 ? hn::Set(DI(), *s.zero) : hn::LoadU(DI(), s.zero + i);
}

template <class T>
void quantize(const float* x, int64_t n, const LinearSteps& steps, int32_t low, int32_t high, T* codes) {
  each_vector(x, n, steps, codes, [&](const float* from, const LinearSteps& s, int64_t i, T* to) HWY_ATTR {
    const DF d;
    const DI di;
    const hn::Rebind<T, DF> dt;
    const auto zero = zero_at(s, i);
    // Clamping first is the same: the bounds are whole numbers, and small enough to be exact.
    const auto least = hn::ConvertTo(d, hn::Sub(hn::Set(di, low), zero));
    const auto most = hn::ConvertTo(d, hn::Sub(hn::Set(di, high), zero));
    const auto quotient = hn::Div(hn::LoadU(d, from), scale_at(s, i));
    const auto number = hn::IfThenElseZero(hn::Eq(quotient, quotient), quotient);
    // A zero point may lie outside of the range: NaN gives it then as near as possible.
    const auto code = hn::NearestInt(hn::Min(hn::Max(number, least), most));
    hn::StoreU(hn::DemoteTo(dt, hn::Add(code, zero)), dt, to);
  });
}

template <class T>
void dequantize(const T* codes, int64_t n, const LinearSteps& steps, float* y) {
  each_vector(codes, n, steps, y, [&](const T* from, const LinearSteps& s, int64_t i, float* to) HWY_ATTR {
    const DF d;
    const DI di;
    const auto code = hn::PromoteTo(di, hn::LoadU(hn::Rebind<T, DF>(), from));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::Sub(code, zero_at(s, i))), scale_at(s, i)), d, to);
  });
}

// A difference of 32-bit codes has more bits than an f32, and may have more than 32.
void dequantize_wide(const int32_t* codes, int64_t n, const LinearSteps& s, float* y) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>((static_cast<double>(codes[i]) - static_cast<double>(s.zero[i * s.step])) *
                              static_cast<double>(s.scale[i * s.step]));
}

void QuantizeLinearRun(const float* x, int64_t n, const LinearSteps& steps, int32_t low, int32_t high, DType to,
                       void* codes) {
  switch (to) {
    case DType::I8: return quantize(x, n, steps, low, high, static_cast<int8_t*>(codes));
    case DType::U8: return quantize(x, n, steps, low, high, static_cast<uint8_t*>(codes));
    case DType::U16: return quantize(x, n, steps, low, high, static_cast<uint16_t*>(codes));
    default: return quantize(x, n, steps, low, high, static_cast<int16_t*>(codes));
  }
}

void DequantizeLinearRun(DType from, const void* codes, int64_t n, const LinearSteps& steps, float* y) {
  switch (from) {
    case DType::I8: return dequantize(static_cast<const int8_t*>(codes), n, steps, y);
    case DType::U8: return dequantize(static_cast<const uint8_t*>(codes), n, steps, y);
    case DType::I16: return dequantize(static_cast<const int16_t*>(codes), n, steps, y);
    case DType::U16: return dequantize(static_cast<const uint16_t*>(codes), n, steps, y);
    default: return dequantize_wide(static_cast<const int32_t*>(codes), n, steps, y);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(QuantizeLinearRun);
HWY_EXPORT(DequantizeLinearRun);

namespace quant {

void quantize_linear_run(const float* x, int64_t n, const LinearSteps& steps, int32_t low, int32_t high, DType to,
                         void* codes) {
  HWY_DYNAMIC_DISPATCH(QuantizeLinearRun)(x, n, steps, low, high, to, codes);
}
void dequantize_linear_run(DType from, const void* codes, int64_t n, const LinearSteps& steps, float* y) {
  HWY_DYNAMIC_DISPATCH(DequantizeLinearRun)(from, codes, n, steps, y);
}

}  // namespace quant
}  // namespace rlx::cpu
#endif
