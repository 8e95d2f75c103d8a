#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/resample.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "backends/cpu/simd/resample.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void ResampleColumns(const float* x, const int32_t* index, const float* weight, int64_t taps, int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::Mul(hn::LoadU(d, weight + i), hn::GatherIndex(d, x, hn::LoadU(di, index + i)));
    for (int64_t k = 1; k < taps; ++k)
      sum = hn::MulAdd(hn::LoadU(d, weight + k * n + i), hn::GatherIndex(d, x, hn::LoadU(di, index + k * n + i)), sum);
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    float sum = weight[i] * x[index[i]];
    for (int64_t k = 1; k < taps; ++k) sum += weight[k * n + i] * x[index[k * n + i]];
    y[i] = sum;
  }
}

void ResampleRows(const float* const* rows, const float* weight, int64_t taps, int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (taps == 2) {
    const auto a = hn::Set(d, weight[0]), b = hn::Set(d, weight[1]);
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::MulAdd(b, hn::LoadU(d, rows[1] + i), hn::Mul(a, hn::LoadU(d, rows[0] + i))), d, y + i);
  }
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    auto w = hn::Set(d, weight[0]);
    auto a = hn::Mul(w, hn::LoadU(d, rows[0] + i)), b = hn::Mul(w, hn::LoadU(d, rows[0] + i + lanes));
    for (int64_t k = 1; k < taps; ++k) {
      w = hn::Set(d, weight[k]);
      a = hn::MulAdd(w, hn::LoadU(d, rows[k] + i), a);
      b = hn::MulAdd(w, hn::LoadU(d, rows[k] + i + lanes), b);
    }
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + lanes);
  }
  for (; i < n; ++i) {
    float sum = weight[0] * rows[0][i];
    for (int64_t k = 1; k < taps; ++k) sum += weight[k] * rows[k][i];
    y[i] = sum;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(ResampleColumns);
HWY_EXPORT(ResampleRows);

void resample_columns(const float* x, const int32_t* index, const float* weight, int64_t taps, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(ResampleColumns)(x, index, weight, taps, n, y);
}
void resample_rows(const float* const* rows, const float* weight, int64_t taps, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(ResampleRows)(rows, weight, taps, n, y);
}

}  // namespace rlx::cpu
#endif
