#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/pool.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/conv/window_axes.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/tail-inl.h"
#include "core/thread_pool.h"
#include "rlx/ops/pool.h"

#ifndef RLX_POOL_FOLDS_
#define RLX_POOL_FOLDS_
namespace rlx::cpu {
enum class Fold { kMax, kMin, kSum, kProd };

inline float identity_of(Fold fold) {
  switch (fold) {
    case Fold::kMax: return -std::numeric_limits<float>::infinity();
    case Fold::kMin: return std::numeric_limits<float>::infinity();
    case Fold::kSum: return 0;
    case Fold::kProd: return 1;
  }
  return 0;
}
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// A NaN on either side stays.
template <Fold kFold>
HWY_INLINE V fold(V a, V b) {
  if constexpr (kFold == Fold::kMax) return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  if constexpr (kFold == Fold::kMin) return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  if constexpr (kFold == Fold::kSum) return hn::Add(a, b);
  if constexpr (kFold == Fold::kProd) return hn::Mul(a, b);
}

// to[i] = to[i] and all rows[r][i] folded; the first time `to` counts for nothing.
template <Fold kFold>
void fold_rows(const float* const* rows, int64_t count, int64_t n, bool first, float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    V v = load_n(d, first ? rows[0] + i : to + i, n - i, 0.0f);
    for (int64_t r = first ? 1 : 0; r < count; ++r) v = fold<kFold>(v, load_n(d, rows[r] + i, n - i, 0.0f));
    store_n(d, v, to + i, n - i);
  }
}

// Elements at[0], at[stride], ...; a vector may read up to stride vectors.
HWY_INLINE V load_strided(D d, const float* at, int64_t stride) {
  if (stride == 1) return hn::LoadU(d, at);
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) return hn::ConcatEven(d, hn::LoadU(d, at + hn::Lanes(d)), hn::LoadU(d, at));
#endif
  const hn::RebindToSigned<D> di;
  return hn::GatherIndex(d, at, hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride))));
}

// y[o] = row[o * stride + t * step] folded over the taps; `row` is readable for some vectors behind its end.
template <Fold kFold>
void fold_taps(const float* row, int64_t n, int64_t taps, int64_t step, int64_t stride, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    V v = load_strided(d, row + i * stride, stride);
    for (int64_t t = 1; t < taps; ++t) v = fold<kFold>(v, load_strided(d, row + i * stride + t * step, stride));
    store_n(d, v, y + i, n - i);
  }
}

// A whole row into one value, in four chains.
template <Fold kFold>
float fold_all(const float* x, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V none = hn::Set(d, identity_of(kFold));
  V v[4] = {none, none, none, none};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    for (int c = 0; c < 4; ++c) v[c] = fold<kFold>(v[c], hn::LoadU(d, x + i + c * lanes));
  for (; i < n; i += lanes) v[0] = fold<kFold>(v[0], load_n(d, x + i, n - i, identity_of(kFold)));
  v[0] = fold<kFold>(fold<kFold>(v[0], v[1]), fold<kFold>(v[2], v[3]));
  HWY_ALIGN float last[hn::MaxLanes(D())];
  hn::Store(v[0], d, last);
  const hn::CappedTag<float, 1> one;
  auto result = hn::Load(one, last);
  for (int64_t l = 1; l < lanes; ++l) {
    const auto b = hn::LoadU(one, last + l);
    if constexpr (kFold == Fold::kMax) result = hn::IfThenElse(hn::Or(hn::Gt(result, b), hn::IsNaN(result)), result, b);
    if constexpr (kFold == Fold::kMin) result = hn::IfThenElse(hn::Or(hn::Lt(result, b), hn::IsNaN(result)), result, b);
    if constexpr (kFold == Fold::kSum) result = hn::Add(result, b);
    if constexpr (kFold == Fold::kProd) result = hn::Mul(result, b);
  }
  return hn::GetLane(result);
}

template <class F>
HWY_INLINE auto with_fold(Fold fold, const F& f) {
  switch (fold) {
    case Fold::kMax: return f(std::integral_constant<Fold, Fold::kMax>());
    case Fold::kMin: return f(std::integral_constant<Fold, Fold::kMin>());
    case Fold::kSum: return f(std::integral_constant<Fold, Fold::kSum>());
    default: return f(std::integral_constant<Fold, Fold::kProd>());
  }
}

void PoolRows(Fold fold, const float* const* rows, int64_t count, int64_t n, bool first, float* to) {
  with_fold(fold, [&](auto f) HWY_ATTR { fold_rows<decltype(f)::value>(rows, count, n, first, to); });
}
void PoolTaps(Fold fold, const float* row, int64_t n, int64_t taps, int64_t step, int64_t stride, float* y) {
  with_fold(fold, [&](auto f) HWY_ATTR { fold_taps<decltype(f)::value>(row, n, taps, step, stride, y); });
}
float PoolAll(Fold fold, const float* x, int64_t n) {
  return with_fold(fold, [&](auto f) HWY_ATTR { return fold_all<decltype(f)::value>(x, n); });
}

void Divide(float* y, const float* by, float factor, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    store_n(d, hn::Div(load_n(d, y + i, n - i, 0.0f), hn::Mul(load_n(d, by + i, n - i, 1.0f), hn::Set(d, factor))),
            y + i, n - i);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(PoolRows);
HWY_EXPORT(PoolTaps);
HWY_EXPORT(PoolAll);
HWY_EXPORT(Divide);

namespace {

constexpr int64_t kTogether = 8;   // result rows whose columns are folded before the first one's taps are
constexpr int64_t kMostRows = 32;  // input rows that are folded at once

// Windows are folded down their columns first, whole rows at a time, then along the row.
struct Layout {
  WindowAxes axes;
  int64_t left;    // padding before the row
  int64_t width;   // of a padded row: every tap of every window lies in it
  int64_t pitch;   // with room for vectors that read too far
  bool global;     // one window, the whole plane
  int64_t floats;  // per thread: padded rows, a converted row or plane, results, divisors

  template <class A>
  Layout(const A& attrs, std::span<const int64_t> x, std::span<const int64_t> y) : axes(window_axes(attrs, x, y)) {
    const WindowAxis& ax = axes[2];
    left = -ax.first;
    width = std::max((ax.out - 1) * ax.stride + (ax.taps - 1) * ax.step + 1, left + ax.in);
    pitch = width + ax.stride * 64;
    global = true;
    for (const WindowAxis& a : axes)
      global = global && a.out == 1 && a.taps == a.in && a.first == 0 && (a.step == 1 || a.taps == 1);
    const int64_t converted = global ? plane_of(axes) : ax.in;
    floats = round_up(kTogether * (pitch + ax.out) + converted + ax.out, 16);
  }
};

// Bytes are folded as floats, which hold them exactly. The identity becomes the end of their range.
const float* row_of(const host::View& x, int64_t first, float* buffer, int64_t n) {
  if (x.dtype == DType::I8)
    std::copy_n(reinterpret_cast<const int8_t*>(x.data) + first, n, buffer);
  else if (x.dtype == DType::U8)
    std::copy_n(reinterpret_cast<const uint8_t*>(x.data) + first, n, buffer);
  else
    return row_as_f32(x.dtype, x.data, first, buffer, n);
  return buffer;
}
template <class T>
void store_bytes(const float* from, T* to, int64_t n) {
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(std::min(std::max(from[i], kLow), kHigh));
}
void store_row(const float* from, const host::View& y, int64_t first, int64_t n) {
  if (y.dtype == DType::I8)
    store_bytes(from, reinterpret_cast<int8_t*>(y.data) + first, n);
  else if (y.dtype == DType::U8)
    store_bytes(from, reinterpret_cast<uint8_t*>(y.data) + first, n);
  else
    from_f32(y.dtype, from, y.data, first, n);
}

// Taps of window o that count for the mean along an axis: inside the input, or inside it and its padding.
int64_t counted(const WindowAxis& a, int64_t o, bool with_padding) {
  int64_t count = 0;
  for (int64_t t = 0; t < a.taps; ++t) {
    const int64_t at = o * a.stride + a.first + t * a.step;
    count += with_padding ? at < a.in + a.behind : a.inside(at);
  }
  return count;
}

template <Fold kFold, bool kMean>
void pool(const Call& call) {
  const host::View &x = call.input(0), &y = call.output(0);
  const auto& attrs = call.attrs<ops::PoolAttrs>();
  const Layout layout(attrs, x.sizes, y.sizes);
  const WindowAxis &az = layout.axes[0], &ay = layout.axes[1], &ax = layout.axes[2];
  const int64_t plane = plane_of(layout.axes), rows = y.dim(0) * y.dim(1) * az.out * ay.out;
  const bool direct = y.dtype == DType::F32;
  const auto scratch = [&] { return call.scratch_as<float>() + ThreadPool::this_thread() * layout.floats; };
  if (layout.global) {
    call.pool().parallel_for(0, rows, std::max<int64_t>(1, kGrain / plane), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float value = HWY_DYNAMIC_DISPATCH(PoolAll)(kFold, row_of(x, p * plane, scratch(), plane), plane);
        if (kMean) value /= static_cast<float>(plane);
        store_row(&value, y, p, 1);
      }
    });
    return;
  }
  const int64_t grain = std::max(kTogether, kGrain / (ax.out + ax.in * ay.taps * az.taps));
  call.pool().parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    float* padded = scratch();
    float *results = padded + kTogether * layout.pitch, *converted = results + kTogether * ax.out;
    float* divisors = converted + ax.in;
    std::fill(padded, padded + kTogether * layout.pitch, identity_of(kFold));
    if (kMean)
      for (int64_t o = 0; o < ax.out; ++o) divisors[o] = static_cast<float>(counted(ax, o, attrs.count_include_pad));
    for (int64_t first = begin; first < end; first += kTogether) {
      const int64_t count = std::min(kTogether, end - first);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t oy = (first + i) % ay.out, oz = (first + i) / ay.out % az.out;
        const int64_t from = (first + i) / ay.out / az.out * plane;
        float* to = padded + i * layout.pitch + layout.left;
        const float* lines[kMostRows];
        int64_t gathered = 0;
        bool empty = true;
        const auto fold_gathered = [&] {
          if (gathered == 0) return;
          HWY_DYNAMIC_DISPATCH(PoolRows)(kFold, lines, gathered, ax.in, empty, to);
          empty = false;
          gathered = 0;
        };
        for (int64_t tz = 0; tz < az.taps; ++tz) {
          const int64_t z = oz * az.stride + az.first + tz * az.step;
          if (!az.inside(z)) continue;
          for (int64_t ty = 0; ty < ay.taps; ++ty) {
            const int64_t line = oy * ay.stride + ay.first + ty * ay.step;
            if (!ay.inside(line)) continue;
            lines[gathered++] = row_of(x, from + (z * ay.in + line) * ax.in, converted, ax.in);
            if (gathered == kMostRows || x.dtype != DType::F32) fold_gathered();
          }
        }
        fold_gathered();
        if (empty) std::fill(to, to + ax.in, identity_of(kFold));
      }
      for (int64_t i = 0; i < count; ++i) {
        float* out = direct ? reinterpret_cast<float*>(y.data) + (first + i) * ax.out : results + i * ax.out;
        HWY_DYNAMIC_DISPATCH(PoolTaps)
        (kFold, padded + i * layout.pitch, ax.out, ax.taps, ax.step, ax.stride, out);
        if (kMean) {
          const int64_t oy = (first + i) % ay.out, oz = (first + i) / ay.out % az.out;
          const int64_t above = counted(ay, oy, attrs.count_include_pad) * counted(az, oz, attrs.count_include_pad);
          HWY_DYNAMIC_DISPATCH(Divide)(out, divisors, static_cast<float>(above), ax.out);
        }
      }
      if (!direct) store_row(results, y, first * ax.out, count * ax.out);
    }
  });
}

}  // namespace

bool pool_order_supports(const Signature& s) {
  const DType dtype = s.input(0).dtype;
  return is_small_float(dtype) || dtype == DType::I8 || dtype == DType::U8;
}

int64_t pool_scratch(const Signature& s, int threads) {
  const auto x = s.input(0).shape.sizes(), y = s.output(0).shape.sizes();
  return threads * Layout(s.attrs.as<ops::PoolAttrs>(), x, y).floats * static_cast<int64_t>(sizeof(float));
}

void pool_max(const Call& call) { pool<Fold::kMax, false>(call); }
void pool_mean(const Call& call) { pool<Fold::kSum, true>(call); }
void pool_min(const Call& call) { pool<Fold::kMin, false>(call); }
void pool_prod(const Call& call) { pool<Fold::kProd, false>(call); }
void pool_sum(const Call& call) { pool<Fold::kSum, false>(call); }

}  // namespace rlx::cpu
#endif
