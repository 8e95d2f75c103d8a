#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/softmax.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/exp-inl.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row of n contiguous elements; y may be x. A NaN reaches the sum, and so the whole row.
void SoftmaxRow(const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float lowest = -std::numeric_limits<float>::infinity();  // exp gives 0 for the lanes behind the row
  auto top = hn::Set(d, lowest);
  for (int64_t i = 0; i < n; i += lanes) top = hn::Max(top, load_n(d, x + i, n - i, lowest));
  // An all -inf row is NaN: there the lanes behind it are NaN too.
  const auto max = hn::MaxOfLanes(d, top);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto e = exp(d, hn::Sub(load_n(d, x + i, n - i, lowest), max));
    sum = hn::Add(sum, e);
    store_n(d, e, y + i, n - i);
  }
  const auto scale = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
  for (int64_t i = 0; i < n; i += lanes) store_n(d, hn::Mul(load_n(d, y + i, n - i, 0.0f), scale), y + i, n - i);
}

// `width` columns side by side, `cols` elements each, `stride` apart; y may be x.
void SoftmaxColumns(const float* x, float* y, int64_t cols, int64_t stride, int64_t width) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < width; i += lanes, x += lanes, y += lanes) {
    const int64_t n = width - i;
    auto top = load_n(d, x, n, 0.0f);
    for (int64_t c = 1; c < cols; ++c) top = hn::Max(top, load_n(d, x + c * stride, n, 0.0f));
    auto sum = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      const auto e = exp(d, hn::Sub(load_n(d, x + c * stride, n, 0.0f), top));
      sum = hn::Add(sum, e);
      store_n(d, e, y + c * stride, n);
    }
    const auto scale = hn::Div(hn::Set(d, 1.0f), sum);
    for (int64_t c = 0; c < cols; ++c)
      store_n(d, hn::Mul(load_n(d, y + c * stride, n, 0.0f), scale), y + c * stride, n);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(SoftmaxRow);
HWY_EXPORT(SoftmaxColumns);

// Columns of a softmax over an inner axis are taken this many at a time.
static constexpr int64_t kColumns = 64;

// Rows of F16 and BF16 are converted here, one row or one group of columns per thread.
int64_t softmax_scratch(const Signature& s, int threads) {
  if (s.input(0).dtype == DType::F32) return 0;
  const auto [outer, cols, inner] = host::split_at(s.input(0).shape.sizes(), s.attrs.as<ops::SoftmaxAttrs>().axis);
  return threads * cols * std::min(inner, kColumns) * static_cast<int64_t>(sizeof(float));
}

void softmax(const Call& call) {
  const auto [outer, cols, inner] = host::split_at(call.input(0).sizes, call.attrs<ops::SoftmaxAttrs>().axis);
  const DType dtype = call.input(0).dtype;
  const std::byte* x = call.input(0).data;
  std::byte* y = call.output(0).data;
  const bool direct = dtype == DType::F32;
  const int64_t width = std::min(inner, kColumns), groups = (inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kGrain / (cols * width));
  call.pool().parallel_for(0, outer * groups, grain, [&, cols = cols, inner = inner](int64_t begin, int64_t end) {
    float* buffer = direct ? nullptr : call.scratch_as<float>() + ThreadPool::this_thread() * cols * width;
    for (int64_t g = begin; g < end; ++g) {
      const int64_t column = g % groups * width, n = std::min(width, inner - column);
      const int64_t first = g / groups * cols * inner + column;
      if (direct) {
        const float* from = reinterpret_cast<const float*>(x) + first;
        float* to = reinterpret_cast<float*>(y) + first;
        if (inner == 1)
          HWY_DYNAMIC_DISPATCH(SoftmaxRow)(from, to, cols);
        else
          HWY_DYNAMIC_DISPATCH(SoftmaxColumns)(from, to, cols, inner, n);
        continue;
      }
      const int64_t rows = inner == 1 ? 1 : cols, row = inner == 1 ? cols : n;
      for (int64_t r = 0; r < rows; ++r) to_f32(dtype, x, first + r * inner, buffer + r * row, row);
      if (inner == 1)
        HWY_DYNAMIC_DISPATCH(SoftmaxRow)(buffer, buffer, cols);
      else
        HWY_DYNAMIC_DISPATCH(SoftmaxColumns)(buffer, buffer, cols, n, n);
      for (int64_t r = 0; r < rows; ++r) from_f32(dtype, buffer + r * row, y, first + r * inner, row);
    }
  });
}

}  // namespace rlx::cpu
#endif
