#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/reduce.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <type_traits>

#include "backends/cpu/simd/reduce.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Step kStep, class D, class V = hn::Vec<D>>
HWY_INLINE V combined(D, V a, V b) {
  if constexpr (kStep == Step::kSum) {
    return hn::Add(a, b);
  } else if constexpr (kStep == Step::kProd) {
    return hn::Mul(a, b);
  } else {
    const V best = kStep == Step::kMax ? hn::Max(a, b) : hn::Min(a, b);
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
      return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, best));
    else
      return best;
  }
}

// One vector of Acc from as many elements of T.
template <class Acc, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<Acc>> load_as(const T* p) {
  const hn::ScalableTag<Acc> d;
  if constexpr (std::is_same_v<Acc, T>)
    return hn::LoadU(d, p);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, decltype(d)>(), p));
}

// The same of n < Lanes elements; the other lanes hold `other`.
template <class Acc, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<Acc>> load_as_n(const T* p, int64_t n, Acc other) {
  const hn::ScalableTag<Acc> d;
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  if constexpr (std::is_same_v<Acc, T>) {
    return hn::IfThenElse(mask, masked_load(d, mask, p), hn::Set(d, other));
  } else {
    const hn::Rebind<T, decltype(d)> narrow;
    const auto few = masked_load(narrow, hn::FirstN(narrow, static_cast<size_t>(n)), p);
    return hn::IfThenElse(mask, hn::PromoteTo(d, few), hn::Set(d, other));
  }
}

template <Step kStep, class Acc>
HWY_INLINE Acc across_lanes(hn::Vec<hn::ScalableTag<Acc>> v) {
  const hn::ScalableTag<Acc> d;
  if constexpr (kStep == Step::kSum) {
    return hn::GetLane(hn::SumOfLanes(d, v));
  } else {
    HWY_ALIGN Acc lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    Acc result = lanes[0];
    for (size_t i = 1; i < hn::Lanes(d); ++i) result = combine(kStep, result, lanes[i]);
    return result;
  }
}

template <Step kStep, class T, class Acc>
HWY_INLINE void rows_of(const T* x, int64_t rows, int64_t cols, Acc* acc) {
  const hn::ScalableTag<Acc> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Acc nothing = identity<Acc>(kStep);
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    auto a = hn::Set(d, nothing);
    int64_t i = 0;
    if (cols >= 8 * lanes) {  // chains that do not wait for each other
      auto b = a, c = a, e = a, f = a, g = a, h = a, k = a;
      for (; i + 8 * lanes <= cols; i += 8 * lanes) {
        a = combined<kStep>(d, a, load_as<Acc>(x + i));
        b = combined<kStep>(d, b, load_as<Acc>(x + i + lanes));
        c = combined<kStep>(d, c, load_as<Acc>(x + i + 2 * lanes));
        e = combined<kStep>(d, e, load_as<Acc>(x + i + 3 * lanes));
        f = combined<kStep>(d, f, load_as<Acc>(x + i + 4 * lanes));
        g = combined<kStep>(d, g, load_as<Acc>(x + i + 5 * lanes));
        h = combined<kStep>(d, h, load_as<Acc>(x + i + 6 * lanes));
        k = combined<kStep>(d, k, load_as<Acc>(x + i + 7 * lanes));
      }
      a = combined<kStep>(d, combined<kStep>(d, a, b), combined<kStep>(d, c, e));
      f = combined<kStep>(d, combined<kStep>(d, f, g), combined<kStep>(d, h, k));
      a = combined<kStep>(d, a, f);
    }
    for (; i + lanes <= cols; i += lanes) a = combined<kStep>(d, a, load_as<Acc>(x + i));
    if (i < cols) a = combined<kStep>(d, a, load_as_n<Acc>(x + i, cols - i, nothing));
    acc[r] = combine(kStep, acc[r], across_lanes<kStep, Acc>(a));
  }
}

template <Step kStep, class T, class Acc>
HWY_INLINE void columns_of(const T* x, int64_t rows, int64_t stride, int64_t width, Acc* acc) {
  const hn::ScalableTag<Acc> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t r = 0;
  // Eight rows at a time: the accumulators travel to memory and back once for all of them.
  for (; r + 8 <= rows; r += 8, x += 8 * stride) {
    int64_t i = 0;
    // Short rows that follow each other: eight streams in one page are more than the hardware looks ahead for.
    if (stride * static_cast<int64_t>(sizeof(T)) <= 1024)
      for (int64_t k = 0; k < 8 * stride; k += 64 / static_cast<int64_t>(sizeof(T))) hwy::Prefetch(x + 16 * stride + k);
    for (; i + lanes <= width; i += lanes) {
      const T* p = x + i;
      const auto a = combined<kStep>(d, load_as<Acc>(p), load_as<Acc>(p + stride));
      const auto b = combined<kStep>(d, load_as<Acc>(p + 2 * stride), load_as<Acc>(p + 3 * stride));
      const auto c = combined<kStep>(d, load_as<Acc>(p + 4 * stride), load_as<Acc>(p + 5 * stride));
      const auto e = combined<kStep>(d, load_as<Acc>(p + 6 * stride), load_as<Acc>(p + 7 * stride));
      const auto all = combined<kStep>(d, combined<kStep>(d, a, b), combined<kStep>(d, c, e));
      hn::StoreU(combined<kStep>(d, hn::LoadU(d, acc + i), all), d, acc + i);
    }
    if (i == width) continue;
    auto a = load_n(d, acc + i, width - i, Acc{});
    for (int64_t k = 0; k < 8; ++k) a = combined<kStep>(d, a, load_as_n<Acc>(x + k * stride + i, width - i, Acc{}));
    store_n(d, a, acc + i, width - i);
  }
  for (; r < rows; ++r, x += stride) {
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes)
      hn::StoreU(combined<kStep>(d, hn::LoadU(d, acc + i), load_as<Acc>(x + i)), d, acc + i);
    if (i < width)
      store_n(d, combined<kStep>(d, load_n(d, acc + i, width - i, Acc{}), load_as_n<Acc>(x + i, width - i, Acc{})),
              acc + i, width - i);
  }
}

template <class T, class Acc>
HWY_INLINE void any_rows(Step step, const T* x, int64_t rows, int64_t cols, Acc* acc) {
  switch (step) {
    case Step::kSum: return rows_of<Step::kSum>(x, rows, cols, acc);
    case Step::kProd: return rows_of<Step::kProd>(x, rows, cols, acc);
    case Step::kMax: return rows_of<Step::kMax>(x, rows, cols, acc);
    case Step::kMin: return rows_of<Step::kMin>(x, rows, cols, acc);
  }
}

template <class T, class Acc>
HWY_INLINE void any_columns(Step step, const T* x, int64_t rows, int64_t stride, int64_t width, Acc* acc) {
  switch (step) {
    case Step::kSum: return columns_of<Step::kSum>(x, rows, stride, width, acc);
    case Step::kProd: return columns_of<Step::kProd>(x, rows, stride, width, acc);
    case Step::kMax: return columns_of<Step::kMax>(x, rows, stride, width, acc);
    case Step::kMin: return columns_of<Step::kMin>(x, rows, stride, width, acc);
  }
}

void RowsF32(Step step, const float* x, int64_t rows, int64_t cols, double* acc) { any_rows(step, x, rows, cols, acc); }
void RowsI32(Step step, const int32_t* x, int64_t rows, int64_t cols, int64_t* acc) {
  any_rows(step, x, rows, cols, acc);
}
void RowsI64(Step step, const int64_t* x, int64_t rows, int64_t cols, int64_t* acc) {
  any_rows(step, x, rows, cols, acc);
}
void ColumnsF32(Step step, const float* x, int64_t rows, int64_t stride, int64_t width, double* acc) {
  any_columns(step, x, rows, stride, width, acc);
}
void ColumnsI32(Step step, const int32_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc) {
  any_columns(step, x, rows, stride, width, acc);
}
void ColumnsI64(Step step, const int64_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc) {
  any_columns(step, x, rows, stride, width, acc);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(RowsF32);
HWY_EXPORT(RowsI32);
HWY_EXPORT(RowsI64);
HWY_EXPORT(ColumnsF32);
HWY_EXPORT(ColumnsI32);
HWY_EXPORT(ColumnsI64);

void reduce_rows(Step step, const float* x, int64_t rows, int64_t cols, double* acc) {
  HWY_DYNAMIC_DISPATCH(RowsF32)(step, x, rows, cols, acc);
}
void reduce_rows(Step step, const int32_t* x, int64_t rows, int64_t cols, int64_t* acc) {
  HWY_DYNAMIC_DISPATCH(RowsI32)(step, x, rows, cols, acc);
}
void reduce_rows(Step step, const int64_t* x, int64_t rows, int64_t cols, int64_t* acc) {
  HWY_DYNAMIC_DISPATCH(RowsI64)(step, x, rows, cols, acc);
}
void reduce_columns(Step step, const float* x, int64_t rows, int64_t stride, int64_t width, double* acc) {
  HWY_DYNAMIC_DISPATCH(ColumnsF32)(step, x, rows, stride, width, acc);
}
void reduce_columns(Step step, const int32_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc) {
  HWY_DYNAMIC_DISPATCH(ColumnsI32)(step, x, rows, stride, width, acc);
}
void reduce_columns(Step step, const int64_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc) {
  HWY_DYNAMIC_DISPATCH(ColumnsI64)(step, x, rows, stride, width, acc);
}

}  // namespace rlx::cpu
#endif
