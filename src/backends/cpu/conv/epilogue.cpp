#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/epilogue.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/conv/epilogue.h"
#include "backends/cpu/elementwise/activation_step.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/convert.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kResidual, bool kRelu>
HWY_INLINE void add_terms(float* sums, float bias, const float* residual, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto b = hn::Set(d, bias);
  const auto finish = [&](auto v, auto r) HWY_ATTR {
    v = hn::Add(v, b);
    if (kResidual) v = hn::Add(v, r);
    return kRelu ? hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v) : v;  // NaN is not < 0 and stays
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(finish(hn::LoadU(d, sums + i), kResidual ? hn::LoadU(d, residual + i) : b), d, sums + i);
  if (i == n) return;
  const auto r = kResidual ? load_n(d, residual + i, n - i, 0.0f) : b;
  store_n(d, finish(load_n(d, sums + i, n - i, 0.0f), r), sums + i, n - i);
}

void AddTerms(float* sums, float bias, const float* residual, bool relu, int64_t n) {
  if (residual)
    relu ? add_terms<true, true>(sums, bias, residual, n) : add_terms<true, false>(sums, bias, residual, n);
  else
    relu ? add_terms<false, true>(sums, bias, nullptr, n) : add_terms<false, false>(sums, bias, nullptr, n);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(AddTerms);

void finish_conv(const ConvEpilogue& e, int64_t channel, int64_t at, float* sums, int64_t n) {
  constexpr int64_t kChunk = 256;
  using ops::ActivationKind;
  const bool relu = e.activation == ActivationKind::kRelu;
  const StepFn activate = relu ? nullptr : activation_step(e.activation);
  const float bias = e.bias == nullptr       ? -0.0f  // what changes no sum
                     : e.dtype == DType::F32 ? reinterpret_cast<const float*>(e.bias)[channel]
                                             : static_cast<float>(load_fn(e.dtype)(e.bias, channel));
  const bool convert = e.residual && e.dtype != DType::F32;
  alignas(64) float converted[kChunk];
  const int64_t chunk = convert ? kChunk : n;
  for (int64_t i = 0; i < n; i += chunk) {
    const int64_t count = std::min(chunk, n - i);
    const float* residual = e.residual ? row_as_f32(e.dtype, e.residual, at + i, converted, count) : nullptr;
    HWY_DYNAMIC_DISPATCH(AddTerms)(sums + i, bias, residual, relu, count);
  }
  if (activate) {
    const void* x = sums;
    activate(&x, sums, n);
  }
}

}  // namespace rlx::cpu
#endif
