#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/softmax.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/simd/exp-inl.h"
#include "backends/cpu/simd/half_rows-inl.h"
#include "backends/cpu/simd/softmax.h"
#include "backends/cpu/simd/stream-inl.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;

// exp gives 0 for lanes behind a row that hold this. In an all -inf row they are NaN, as the whole row is.
constexpr float kLowest = -std::numeric_limits<float>::infinity();

HWY_INLINE V TopOf(const float* x, int64_t n) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V a = hn::Set(d, kLowest), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Max(a, hn::LoadU(d, x + i));
    b = hn::Max(b, hn::LoadU(d, x + i + lanes));
    c = hn::Max(c, hn::LoadU(d, x + i + 2 * lanes));
    e = hn::Max(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i < n; i += lanes) a = hn::Max(a, load_n(d, x + i, n - i, kLowest));
  return hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e)));
}

// Rows of at most one vector: nothing goes to memory between the passes.
HWY_INLINE void short_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  const F32 d;
  const V one = hn::Set(d, 1.0f);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const V v = load_n(d, x, cols, kLowest);
    const V e = exp_of_negative(d, hn::Sub(v, hn::MaxOfLanes(d, v)));
    store_n(d, hn::Mul(e, hn::Div(one, hn::SumOfLanes(d, e))), y, cols);
  }
}

// e = exp(x - top), and one over their sum; e may be x. The line of the first element at `ahead` and those behind it
// are asked for on the way, one per `line` elements of x.
HWY_INLINE V exp_row(const float* x, float* e, int64_t n, V top, const char* ahead, int64_t line) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum = hn::Zero(d), other = sum;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V a = exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i), top));
    const V b = exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i + lanes), top));
    sum = hn::Add(sum, a);
    other = hn::Add(other, b);
    hn::StoreU(a, d, e + i);
    hn::StoreU(b, d, e + i + lanes);
    if (ahead == nullptr) continue;
    hwy::Prefetch(ahead + i * 64 / line);
    if (line < 2 * lanes) hwy::Prefetch(ahead + (i + lanes) * 64 / line);
  }
  for (; i < n; i += lanes) {
    const V a = exp_of_negative(d, hn::Sub(load_n(d, x + i, n - i, kLowest), top));
    sum = hn::Add(sum, a);
    store_n(d, a, e + i, n - i);
  }
  return hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, hn::Add(sum, other)));
}

// The next row is fetched while the arithmetic is what takes the time, unless it would push this one out.
constexpr int64_t kMostAhead = 16384;

void Rows(const float* x, float* e, float* y, int64_t rows, int64_t cols, bool stream) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (cols <= lanes) return short_rows(x, y, rows, cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const char* ahead = cols <= kMostAhead ? reinterpret_cast<const char*>(x + cols) : nullptr;
    const V scale = exp_row(x, e, cols, TopOf(x, cols), ahead, 16);
    store_row(y, cols, stream,
              [&](int64_t at, int64_t left) HWY_ATTR { return hn::Mul(load_n(d, e + at, left, 0.0f), scale); });
    e += stream ? 0 : cols;  // one row of exponentials is enough when they are not the result
  }
}

template <bool kBf16>
HWY_INLINE void half_rows(const uint16_t* x, float* e, uint16_t* y, int64_t rows, int64_t cols, bool stream) {
  const F32 d;
  constexpr uint16_t kLowestBits = kBf16 ? 0xFF80 : 0xFC00;
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    V a = hn::Set(d, kLowest), b = a;
    widen_row<kBf16>(x, cols, e, kLowestBits, a, b, [](V m, V v) HWY_ATTR { return hn::Max(m, v); });
    const char* ahead = cols <= kMostAhead ? reinterpret_cast<const char*>(x + cols) : nullptr;
    const V scale = exp_row(e, e, cols, hn::MaxOfLanes(d, hn::Max(a, b)), ahead, 32);
    narrow_row<kBf16>(y, cols, stream,
                      [&](int64_t i, int64_t left) HWY_ATTR { return hn::Mul(load_n(d, e + i, left, 0.0f), scale); });
  }
}

void HalfRows(bool bf16, const uint16_t* x, float* e, uint16_t* y, int64_t rows, int64_t cols, bool stream) {
  if (bf16)
    half_rows<true>(x, e, y, rows, cols, stream);
  else
    half_rows<false>(x, e, y, rows, cols, stream);
}

void Columns(float* v, int64_t cols, int64_t width) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float top[kSoftmaxStrip], sum[kSoftmaxStrip];
  std::fill(top, top + kSoftmaxStrip, kLowest);
  std::fill(sum, sum + kSoftmaxStrip, 0.0f);
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t i = 0; i < width; i += lanes)
      hn::Store(hn::Max(hn::Load(d, top + i), load_n(d, v + c * width + i, width - i, kLowest)), d, top + i);
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t i = 0; i < width; i += lanes) {
      float* p = v + c * width + i;
      const V e = exp_of_negative(d, hn::Sub(load_n(d, p, width - i, kLowest), hn::Load(d, top + i)));
      hn::Store(hn::Add(hn::Load(d, sum + i), e), d, sum + i);
      store_n(d, e, p, width - i);
    }
  for (int64_t i = 0; i < width; i += lanes) hn::Store(hn::Div(hn::Set(d, 1.0f), hn::Load(d, sum + i)), d, sum + i);
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t i = 0; i < width; i += lanes) {
      float* p = v + c * width + i;
      store_n(d, hn::Mul(load_n(d, p, width - i, 0.0f), hn::Load(d, sum + i)), p, width - i);
    }
}

// In pieces whose sums are short enough for f32.
ExpSum SumOfExp(const float* x, int64_t n) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V top = TopOf(x, n);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 4096) {
    const int64_t end = std::min(n, begin + 4096);
    V sum = hn::Zero(d);
    for (int64_t i = begin; i < end; i += lanes) {
      sum = hn::Add(sum, exp_of_negative(d, hn::Sub(load_n(d, x + i, end - i, kLowest), top)));
      if (n <= kMostAhead) hwy::Prefetch(x + n + i);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return {hn::GetLane(top), total};
}

void ScaledExp(const float* x, float* y, int64_t n, float top, float scale) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V t = hn::Set(d, top), s = hn::Set(d, scale);
  for (int64_t i = 0; i < n; i += lanes)
    store_n(d, hn::Mul(exp_of_negative(d, hn::Sub(load_n(d, x + i, n - i, 0.0f), t)), s), y + i, n - i);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(Rows);
HWY_EXPORT(HalfRows);
HWY_EXPORT(Columns);
HWY_EXPORT(SumOfExp);
HWY_EXPORT(ScaledExp);

void softmax_rows(const float* x, float* e, float* y, int64_t rows, int64_t cols, bool stream) {
  HWY_DYNAMIC_DISPATCH(Rows)(x, e, y, rows, cols, stream);
}
void softmax_half_rows(bool bf16, const uint16_t* x, float* e, uint16_t* y, int64_t rows, int64_t cols, bool stream) {
  HWY_DYNAMIC_DISPATCH(HalfRows)(bf16, x, e, y, rows, cols, stream);
}
void softmax_columns(float* v, int64_t cols, int64_t width) { HWY_DYNAMIC_DISPATCH(Columns)(v, cols, width); }
ExpSum exp_sum_of_row(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumOfExp)(x, n); }
void scaled_exp_row(const float* x, float* y, int64_t n, float top, float scale) {
  HWY_DYNAMIC_DISPATCH(ScaledExp)(x, y, n, top, scale);
}

}  // namespace rlx::cpu
#endif
