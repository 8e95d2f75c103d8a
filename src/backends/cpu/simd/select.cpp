#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/select.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/simd/select.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using VF = hn::Vec<F32>;
using VI = hn::Vec<I32>;

void ScanStep(const float* x, float* y, double* sums, int64_t width, bool exclusive, const float* ahead) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    hwy::Prefetch(ahead + i);
    const auto before = hn::LoadU(d, sums + i), after = hn::Add(before, hn::PromoteTo(d, hn::LoadU(f, x + i)));
    hn::StoreU(after, d, sums + i);
    hn::StoreU(hn::DemoteTo(f, exclusive ? before : after), f, y + i);
  }
  for (; i < width; ++i) {
    const double before = sums[i];
    sums[i] += static_cast<double>(x[i]);
    y[i] = static_cast<float>(exclusive ? before : sums[i]);
  }
}

// Where `found` first holds for an element, or n.
template <class F>
HWY_INLINE int64_t first_of(const float* x, int64_t n, F found) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::And(found(load_n(d, x + i, n - i, 0.0f)), hn::FirstN(d, static_cast<size_t>(std::min(lanes, n - i))));
    const auto at = hn::FindFirstTrue(d, mask);
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  return n;
}

int64_t ArgOfRow(const float* x, int64_t n, bool largest) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float worst = largest ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  VF a = hn::Set(d, worst), b = a;
  auto nan = hn::IsNaN(a);
  const auto better = [largest](VF v, VF w) HWY_ATTR { return largest ? hn::Max(v, w) : hn::Min(v, w); };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const VF v = hn::LoadU(d, x + i), w = hn::LoadU(d, x + i + lanes);
    nan = hn::Or(nan, hn::Or(hn::IsNaN(v), hn::IsNaN(w)));
    a = better(v, a);
    b = better(w, b);
  }
  for (; i < n; i += lanes) {
    const VF v = load_n(d, x + i, n - i, worst);
    nan = hn::Or(nan, hn::IsNaN(v));
    a = better(v, a);
  }
  if (!hn::AllFalse(d, nan)) return first_of(x, n, [](VF v) HWY_ATTR { return hn::IsNaN(v); });
  const VF best = largest ? hn::MaxOfLanes(d, hn::Max(a, b)) : hn::MinOfLanes(d, hn::Min(a, b));
  return first_of(x, n, [best](VF v) HWY_ATTR { return hn::Eq(v, best); });
}

void ArgOfColumns(const float* x, int64_t rows, int64_t stride, int64_t width, bool largest, int32_t* index) {
  const F32 d;
  const I32 di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float best[kArgStrip];
  HWY_ALIGN int32_t at[kArgStrip] = {};
  for (int64_t i = 0; i < width; i += lanes) hn::Store(load_n(d, x + i, width - i, 0.0f), d, best + i);
  for (int64_t r = 1; r < rows; ++r) {
    x += stride;
    const VI row = hn::Set(di, static_cast<int32_t>(r));
    for (int64_t i = 0; i < width; i += lanes) {
      const VF v = load_n(d, x + i, width - i, 0.0f), b = hn::Load(d, best + i);
      const auto nan = hn::IsNaN(b);
      const auto wins = hn::AndNot(nan, hn::Or(hn::IsNaN(v), largest ? hn::Gt(v, b) : hn::Lt(v, b)));
      hn::Store(hn::IfThenElse(wins, v, b), d, best + i);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, wins), row, hn::Load(di, at + i)), di, at + i);
    }
  }
  std::copy_n(at, width, index);
}

void OrderedKeys(const float* x, int32_t* keys, int64_t n, bool largest) {
  const F32 d;
  const I32 di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VI turn = hn::Set(di, largest ? 0 : -1), top = hn::Set(di, std::numeric_limits<int32_t>::max());
  for (int64_t i = 0; i < n; i += lanes) {
    const VF v = load_n(d, x + i, n - i, 0.0f);
    const VI bits = hn::BitCast(di, hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), v));
    const VI ordered = hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), top));
    const VI key = hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(v)), top, ordered);
    store_n(di, hn::Xor(key, turn), keys + i, n - i);
  }
}

int64_t FindAbove(const int32_t* keys, int64_t first, int64_t n, int32_t threshold, int32_t* found, int64_t capacity,
                  int64_t& next) {
  const I32 di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(di));
  const VI limit = hn::Set(di, threshold);
  int64_t count = 0, i = first;
  for (; i < n && count + lanes <= capacity; i += lanes) {
    const int64_t left = std::min(lanes, n - i);
    const auto above = hn::Gt(load_n(di, keys + i, left, std::numeric_limits<int32_t>::min()), limit);
    if (hn::AllFalse(di, above)) continue;
    for (int64_t k = 0; k < left; ++k)
      if (keys[i + k] > threshold) found[count++] = static_cast<int32_t>(i + k);
  }
  next = std::min(i, n);
  return count;
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(ScanStep);
HWY_EXPORT(ArgOfRow);
HWY_EXPORT(ArgOfColumns);
HWY_EXPORT(OrderedKeys);
HWY_EXPORT(FindAbove);

void scan_step(const float* x, float* y, double* sums, int64_t width, bool exclusive, const float* ahead) {
  HWY_DYNAMIC_DISPATCH(ScanStep)(x, y, sums, width, exclusive, ahead);
}
int64_t arg_of_row(const float* x, int64_t n, bool largest) { return HWY_DYNAMIC_DISPATCH(ArgOfRow)(x, n, largest); }
void arg_of_columns(const float* x, int64_t rows, int64_t stride, int64_t width, bool largest, int32_t* index) {
  HWY_DYNAMIC_DISPATCH(ArgOfColumns)(x, rows, stride, width, largest, index);
}
void ordered_keys(const float* x, int32_t* keys, int64_t n, bool largest) {
  HWY_DYNAMIC_DISPATCH(OrderedKeys)(x, keys, n, largest);
}
int64_t find_above(const int32_t* keys, int64_t first, int64_t n, int32_t threshold, int32_t* found, int64_t capacity,
                   int64_t& next) {
  return HWY_DYNAMIC_DISPATCH(FindAbove)(keys, first, n, threshold, found, capacity, next);
}

}  // namespace rlx::cpu
#endif
