#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fft/stages.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <numbers>

#include "backends/cpu/fft/stages.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::fourier::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_n;
using cpu::HWY_NAMESPACE::store_n;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Complex {
  V re, im;
};
HWY_INLINE Complex operator+(const Complex& a, const Complex& b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Complex operator-(const Complex& a, const Complex& b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
HWY_INLINE Complex times(const Complex& a, const Complex& b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
HWY_INLINE Complex scaled(const Complex& a, V f) { return {hn::Mul(a.re, f), hn::Mul(a.im, f)}; }
HWY_INLINE Complex add_scaled(const Complex& sum, const Complex& a, V f) {
  return {hn::MulAdd(a.re, f, sum.re), hn::MulAdd(a.im, f, sum.im)};
}
HWY_INLINE Complex minus_i(const Complex& a) { return {a.im, hn::Neg(a.re)}; }

// The transform of kRadix points in place.
template <int kRadix>
HWY_INLINE void butterfly(D d, Complex* a) {
  if constexpr (kRadix == 2) {
    const Complex b = a[1];
    a[1] = a[0] - b;
    a[0] = a[0] + b;
  } else if constexpr (kRadix == 4) {
    const Complex t0 = a[0] + a[2], t1 = a[0] - a[2], t2 = a[1] + a[3], t3 = minus_i(a[1] - a[3]);
    a[0] = t0 + t2;
    a[1] = t1 + t3;
    a[2] = t0 - t2;
    a[3] = t1 - t3;
  } else {
    // Pairs k and r - k share their cosines, and their sines up to the sign.
    constexpr int kPairs = (kRadix - 1) / 2;
    Complex sum[kPairs], difference[kPairs], first = a[0];
    Complex all = a[0];
    for (int k = 0; k < kPairs; ++k) {
      sum[k] = a[k + 1] + a[kRadix - 1 - k];
      difference[k] = minus_i(a[k + 1] - a[kRadix - 1 - k]);
      all = all + sum[k];
    }
    static const struct Table {
      float cos[kRadix], sin[kRadix];
      Table() {
        for (int i = 0; i < kRadix; ++i) {
          cos[i] = static_cast<float>(std::cos(2 * std::numbers::pi * i / kRadix));
          sin[i] = static_cast<float>(std::sin(2 * std::numbers::pi * i / kRadix));
        }
      }
    } table;
    for (int j = 1; j <= kPairs; ++j) {
      Complex even = first, odd = scaled(difference[0], hn::Set(d, table.sin[j]));
      even = add_scaled(even, sum[0], hn::Set(d, table.cos[j]));
      for (int k = 1; k < kPairs; ++k) {
        even = add_scaled(even, sum[k], hn::Set(d, table.cos[j * (k + 1) % kRadix]));
        odd = add_scaled(odd, difference[k], hn::Set(d, table.sin[j * (k + 1) % kRadix]));
      }
      a[j] = even + odd;
      a[kRadix - j] = even - odd;
    }
    a[0] = all;
  }
}

// Blocks p in [begin, m): the stride s is the vectorised axis.
template <int kRadix>
void blocks(const ConstSplit& x, const Split& y, int64_t begin, int64_t m, int64_t s, const float* w_re,
            const float* w_im) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t p = begin; p < m; ++p) {
    Complex w[kRadix];
    for (int j = 1; j < kRadix; ++j) w[j] = {hn::Set(d, w_re[(j - 1) * m + p]), hn::Set(d, w_im[(j - 1) * m + p])};
    for (int64_t q = 0; q < s; q += lanes) {
      Complex a[kRadix];
      for (int k = 0; k < kRadix; ++k) {
        const int64_t at = q + s * (p + m * k);
        a[k] = {load_n(d, x.re + at, s - q, 0.0f), load_n(d, x.im + at, s - q, 0.0f)};
      }
      butterfly<kRadix>(d, a);
      for (int j = 0; j < kRadix; ++j) {
        const int64_t at = q + s * (kRadix * p + j);
        const Complex b = j == 0 || p == 0 ? a[j] : times(a[j], w[j]);
        store_n(d, b.re, y.re + at, s - q);
        store_n(d, b.im, y.im + at, s - q);
      }
    }
  }
}

// The first pass of a single transform, s = 1: blocks are the vectorised axis. Returns how many were done.
int64_t first_blocks(int64_t radix, const ConstSplit& x, const Split& y, int64_t m, const float* w_re,
                     const float* w_im) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t p = 0;
  const auto load = [&](int64_t k) HWY_ATTR {
    return Complex{hn::LoadU(d, x.re + p + m * k), hn::LoadU(d, x.im + p + m * k)};
  };
  const auto twiddle = [&](int64_t j) HWY_ATTR {
    return Complex{hn::LoadU(d, w_re + (j - 1) * m + p), hn::LoadU(d, w_im + (j - 1) * m + p)};
  };
  if (radix == 4)
    for (; p + lanes <= m; p += lanes) {
      Complex a[4] = {load(0), load(1), load(2), load(3)};
      butterfly<4>(d, a);
      for (int j = 1; j < 4; ++j) a[j] = times(a[j], twiddle(j));
      hn::StoreInterleaved4(a[0].re, a[1].re, a[2].re, a[3].re, d, y.re + 4 * p);
      hn::StoreInterleaved4(a[0].im, a[1].im, a[2].im, a[3].im, d, y.im + 4 * p);
    }
  if (radix == 2)
    for (; p + lanes <= m; p += lanes) {
      Complex a[2] = {load(0), load(1)};
      butterfly<2>(d, a);
      a[1] = times(a[1], twiddle(1));
      hn::StoreInterleaved2(a[0].re, a[1].re, d, y.re + 2 * p);
      hn::StoreInterleaved2(a[0].im, a[1].im, d, y.im + 2 * p);
    }
  if (radix == 3)
    for (; p + lanes <= m; p += lanes) {
      Complex a[3] = {load(0), load(1), load(2)};
      butterfly<3>(d, a);
      for (int j = 1; j < 3; ++j) a[j] = times(a[j], twiddle(j));
      hn::StoreInterleaved3(a[0].re, a[1].re, a[2].re, d, y.re + 3 * p);
      hn::StoreInterleaved3(a[0].im, a[1].im, a[2].im, d, y.im + 3 * p);
    }
  return p;
}

void RunStage(const Stage& stage, const float* twiddles, const ConstSplit& x, const Split& y, int64_t s) {
  const int64_t m = stage.m;
  const float *w_re = twiddles + stage.twiddles, *w_im = w_re + (stage.radix - 1) * m;
  const int64_t begin = s == 1 ? first_blocks(stage.radix, x, y, m, w_re, w_im) : 0;
  switch (stage.radix) {
    case 2: return blocks<2>(x, y, begin, m, s, w_re, w_im);
    case 3: return blocks<3>(x, y, begin, m, s, w_re, w_im);
    case 4: return blocks<4>(x, y, begin, m, s, w_re, w_im);
    case 5: return blocks<5>(x, y, begin, m, s, w_re, w_im);
    case 7: return blocks<7>(x, y, begin, m, s, w_re, w_im);
    case 11: return blocks<11>(x, y, begin, m, s, w_re, w_im);
    case 13: return blocks<13>(x, y, begin, m, s, w_re, w_im);
  }
}

void Multiply(const ConstSplit& x, const ConstSplit& w, const Split& y, int64_t n, int64_t batch) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = [&](const Complex& factor, int64_t at, int64_t left) HWY_ATTR {
    const Complex b = times({load_n(d, x.re + at, left, 0.0f), load_n(d, x.im + at, left, 0.0f)}, factor);
    store_n(d, b.re, y.re + at, left);
    store_n(d, b.im, y.im + at, left);
  };
  if (batch == 1)
    for (int64_t i = 0; i < n; i += lanes)
      one({load_n(d, w.re + i, n - i, 0.0f), load_n(d, w.im + i, n - i, 0.0f)}, i, n - i);
  else
    for (int64_t i = 0; i < n; ++i)
      for (int64_t b = 0; b < batch; b += lanes)
        one({hn::Set(d, w.re[i]), hn::Set(d, w.im[i])}, i * batch + b, batch - b);
}

#if HWY_TARGET != HWY_SCALAR
// out[x][y] = in[y][x] of 4 x 4, times f
template <class In, class Out>
HWY_INLINE void transpose4(const In& in, const Out& out, float f) {
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> d2;
  const auto r0 = hn::LoadU(d, in(0)), r1 = hn::LoadU(d, in(1)), r2 = hn::LoadU(d, in(2)), r3 = hn::LoadU(d, in(3));
  const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  const auto by = hn::Set(d, f);
  hn::StoreU(hn::Mul(by, hn::BitCast(d, hn::InterleaveLower(d2, low01, low23))), d, out(0));
  hn::StoreU(hn::Mul(by, hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23))), d, out(1));
  hn::StoreU(hn::Mul(by, hn::BitCast(d, hn::InterleaveLower(d2, high01, high23))), d, out(2));
  hn::StoreU(hn::Mul(by, hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23))), d, out(3));
}
#endif

template <class Column>
void to_columns(const float* rows, int64_t length, int64_t count, const Column& column) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; r + 4 <= count; r += 4) {
    int64_t c = 0;
    for (; c + 4 <= length; c += 4)
      transpose4([&](int64_t i) HWY_ATTR { return rows + (r + i) * length + c; },
                 [&](int64_t i) HWY_ATTR { return column(c + i) + r; }, 1.0f);
    for (; c < length; ++c)
      for (int64_t i = r; i < r + 4; ++i) column(c)[i] = rows[i * length + c];
  }
#endif
  for (; r < count; ++r)
    for (int64_t c = 0; c < length; ++c) column(c)[r] = rows[r * length + c];
}

template <class Column>
void to_rows(const Column& column, int64_t length, int64_t count, float scale, float* rows) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; r + 4 <= count; r += 4) {
    int64_t c = 0;
    for (; c + 4 <= length; c += 4)
      transpose4([&](int64_t i) HWY_ATTR { return column(c + i) + r; },
                 [&](int64_t i) HWY_ATTR { return rows + (r + i) * length + c; }, scale);
    for (; c < length; ++c)
      for (int64_t i = r; i < r + 4; ++i) rows[i * length + c] = column(c)[i] * scale;
  }
#endif
  for (; r < count; ++r)
    for (int64_t c = 0; c < length; ++c) rows[r * length + c] = column(c)[r] * scale;
}

void RowsToColumns(const float* rows, int64_t length, int64_t count, bool interleaved, const Split& to) {
  const auto batch = static_cast<int64_t>(hn::Lanes(D()));
  if (interleaved)
    to_columns(rows, length, count, [&](int64_t c) HWY_ATTR { return (c % 2 ? to.im : to.re) + c / 2 * batch; });
  else
    to_columns(rows, length, count, [&, half = length / 2](int64_t c) HWY_ATTR {
      return c < half ? to.re + c * batch : to.im + (c - half) * batch;
    });
}

void ColumnsToRows(const ConstSplit& from, int64_t length, int64_t count, bool interleaved, float scale, float* rows) {
  const auto batch = static_cast<int64_t>(hn::Lanes(D()));
  if (interleaved)
    to_rows([&](int64_t c) HWY_ATTR { return (c % 2 ? from.im : from.re) + c / 2 * batch; }, length, count, scale,
            rows);
  else
    to_rows([&, half = length / 2](int64_t c)
                HWY_ATTR { return c < half ? from.re + c * batch : from.im + (c - half) * batch; },
            length, count, scale, rows);
}

void SplitRow(const float* row, int64_t n, const Split& to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V re, im;
    hn::LoadInterleaved2(d, row + 2 * i, re, im);
    hn::StoreU(re, d, to.re + i);
    hn::StoreU(im, d, to.im + i);
  }
  for (; i < n; ++i) to.re[i] = row[2 * i], to.im[i] = row[2 * i + 1];
}

void StoreRow(const ConstSplit& from, int64_t n, bool interleaved, float scale, float* row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V re = hn::Mul(hn::LoadU(d, from.re + i), by), im = hn::Mul(hn::LoadU(d, from.im + i), by);
    if (interleaved) {
      hn::StoreInterleaved2(re, im, d, row + 2 * i);
    } else {
      hn::StoreU(re, d, row + i);
      hn::StoreU(im, d, row + n + i);
    }
  }
  for (; i < n; ++i) {
    row[interleaved ? 2 * i : i] = from.re[i] * scale;
    row[interleaved ? 2 * i + 1 : n + i] = from.im[i] * scale;
  }
}

int64_t BatchWidth() { return static_cast<int64_t>(hn::Lanes(D())); }

}  // namespace rlx::cpu::fourier::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu::fourier {

HWY_EXPORT(RunStage);
HWY_EXPORT(Multiply);
HWY_EXPORT(RowsToColumns);
HWY_EXPORT(ColumnsToRows);
HWY_EXPORT(SplitRow);
HWY_EXPORT(StoreRow);
HWY_EXPORT(BatchWidth);

int64_t batch_width() { return HWY_DYNAMIC_DISPATCH(BatchWidth)(); }

Split run_stages(const Plan& plan, ConstSplit x, Split a, Split b, int64_t batch) {
  Split to = x.re == a.re ? b : a, other = x.re == a.re ? a : b;
  int64_t s = batch;
  for (const Stage& stage : plan.stages) {
    HWY_DYNAMIC_DISPATCH(RunStage)(stage, plan.twiddles.data(), x, to, s);
    s *= stage.radix;
    x = {to.re, to.im};
    std::swap(to, other);
  }
  return other;
}

void multiply(ConstSplit x, ConstSplit w, Split y, int64_t n, int64_t batch) {
  HWY_DYNAMIC_DISPATCH(Multiply)(x, w, y, n, batch);
}
void rows_to_columns(const float* rows, int64_t length, int64_t count, bool interleaved, Split to) {
  HWY_DYNAMIC_DISPATCH(RowsToColumns)(rows, length, count, interleaved, to);
}
void columns_to_rows(ConstSplit from, int64_t length, int64_t count, bool interleaved, float scale, float* rows) {
  HWY_DYNAMIC_DISPATCH(ColumnsToRows)(from, length, count, interleaved, scale, rows);
}
void split_row(const float* row, int64_t n, Split to) { HWY_DYNAMIC_DISPATCH(SplitRow)(row, n, to); }
void store_row(ConstSplit from, int64_t n, bool interleaved, float scale, float* row) {
  HWY_DYNAMIC_DISPATCH(StoreRow)(from, n, interleaved, scale, row);
}

}  // namespace rlx::cpu::fourier
#endif
