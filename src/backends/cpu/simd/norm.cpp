#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/norm.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/simd/half_rows-inl.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/simd/stream-inl.h"
#include "backends/cpu/simd/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using F64 = hn::ScalableTag<double>;
using Half = hn::Rebind<float, F64>;  // as many floats as a vector has doubles
using VF = hn::Vec<F32>;
using VD = hn::Vec<F64>;

// f(vector) of the whole row in double, with as many chains as hide the latency of an addition.
template <class F>
HWY_INLINE double sum_of(const float* x, int64_t n, F f) {
  const F64 d;
  const Half h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VD a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = f(a, hn::PromoteTo(d, hn::LoadU(h, x + i)));
    b = f(b, hn::PromoteTo(d, hn::LoadU(h, x + i + lanes)));
    c = f(c, hn::PromoteTo(d, hn::LoadU(h, x + i + 2 * lanes)));
    e = f(e, hn::PromoteTo(d, hn::LoadU(h, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = f(a, hn::PromoteTo(d, hn::LoadU(h, x + i)));
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    b = hn::IfThenElse(mask, f(b, hn::PromoteTo(d, load_n(h, x + i, n - i, 0.0f))), b);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

double Sum(const float* x, int64_t n) {
  return sum_of(x, n, [](VD a, VD v) HWY_ATTR { return hn::Add(a, v); });
}

double Squares(const float* x, int64_t n, double mean) {
  const VD m = hn::Set(F64(), mean);
  return sum_of(x, n, [m](VD a, VD v) HWY_ATTR {
    const VD c = hn::Sub(v, m);
    return hn::MulAdd(c, c, a);
  });
}

// The mean, as f32 gives it.
HWY_INLINE float fast_mean(const float* x, int64_t n) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VF a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + lanes));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i < n; i += lanes) a = hn::Add(a, load_n(d, x + i, n - i, 0.0f));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)))) / static_cast<float>(n);
}

// The statistics in f32, which is twice as fast: the mean need only be close, as the squares around it tell how far it
// is off. False where f32 does not hold the squares (too large, too small, NaN).
HWY_INLINE bool fast_stats(const float* x, int64_t n, float about, bool centred, double eps, RowStats& stats) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto count = static_cast<double>(n);
  const VF m = hn::Set(d, about);
  double off = 0, squares = 0;
  constexpr int64_t kPiece = 2048;  // short enough for sums in f32
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = std::min(n, begin + kPiece);
    VF o0 = hn::Zero(d), o1 = o0, s0 = o0, s1 = o0, s2 = o0, s3 = o0;
    int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      const VF v0 = hn::Sub(hn::LoadU(d, x + i), m), v1 = hn::Sub(hn::LoadU(d, x + i + lanes), m);
      const VF v2 = hn::Sub(hn::LoadU(d, x + i + 2 * lanes), m), v3 = hn::Sub(hn::LoadU(d, x + i + 3 * lanes), m);
      if (centred) o0 = hn::Add(o0, hn::Add(v0, v1)), o1 = hn::Add(o1, hn::Add(v2, v3));
      s0 = hn::MulAdd(v0, v0, s0);
      s1 = hn::MulAdd(v1, v1, s1);
      s2 = hn::MulAdd(v2, v2, s2);
      s3 = hn::MulAdd(v3, v3, s3);
    }
    for (; i < end; i += lanes) {
      const VF v = hn::Sub(load_n(d, x + i, end - i, about), m);
      o0 = hn::Add(o0, v);
      s0 = hn::MulAdd(v, v, s0);
    }
    off += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(o0, o1))));
    squares += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))));
  }
  if (!(squares / count > 1e-25 && squares < 1e37)) return false;
  off = centred ? off / count : 0;
  // Where the shift is of the size of what is left, the difference below would lose digits.
  if (off * off * 16 > squares / count) return false;
  stats = row_stats(static_cast<double>(about) + off, squares - off * off * count, count, eps);
  return true;
}

HWY_INLINE RowStats stats_of_row(const float* x, int64_t n, float about, bool centred, double eps) {
  RowStats stats;
  if (fast_stats(x, n, about, centred, eps, stats)) return stats;
  const double mean = centred ? Sum(x, n) / static_cast<double>(n) : 0;
  return row_stats(mean, Squares(x, n, mean), static_cast<double>(n), eps);
}

RowStats StatsOfRow(const float* x, int64_t n, bool centred, double eps) {
  return stats_of_row(x, n, centred ? fast_mean(x, n) : 0, centred, eps);
}

struct Scale {
  VF mean, rest, r;
  explicit HWY_INLINE Scale(const RowStats& s)
      : mean(hn::Set(F32(), s.mean)), rest(hn::Set(F32(), s.rest)), r(hn::Set(F32(), s.r)) {}
  HWY_INLINE VF operator()(VF x) const { return hn::Mul(hn::Sub(hn::Sub(x, mean), rest), r); }
};

// store(f) writes the row whose elements are f(i, how many are left).
template <class Store>
HWY_INLINE void normalise_to(const Store& store, const float* x, const RowStats& stats, const Affine& affine,
                             Ahead ahead) {
  const F32 d;
  const Scale scaled(stats);
  const auto fetch = [&](int64_t i) HWY_ATTR {
    if (ahead.a != nullptr) hwy::Prefetch(reinterpret_cast<const char*>(ahead.a) + i * ahead.element);
    if (ahead.b != nullptr) hwy::Prefetch(reinterpret_cast<const char*>(ahead.b) + i * ahead.element);
  };
  if (affine.gamma == nullptr) {
    const VF scale = hn::Set(d, affine.scale), shift = hn::Set(d, affine.shift);
    store([&](int64_t i, int64_t left)
              HWY_ATTR { return hn::MulAdd(scaled(load_n(d, x + i, left, 0.0f)), scale, shift); });
  } else if (affine.beta == nullptr) {
    store([&](int64_t i, int64_t left) HWY_ATTR {
      fetch(i);
      return hn::Mul(scaled(load_n(d, x + i, left, 0.0f)), load_n(d, affine.gamma + i, left, 0.0f));
    });
  } else {
    store([&](int64_t i, int64_t left) HWY_ATTR {
      fetch(i);
      return hn::MulAdd(scaled(load_n(d, x + i, left, 0.0f)), load_n(d, affine.gamma + i, left, 0.0f),
                        load_n(d, affine.beta + i, left, 0.0f));
    });
  }
}

HWY_INLINE void NormaliseRow(const float* x, float* y, int64_t n, const RowStats& stats, const Affine& affine,
                             bool stream, Ahead ahead) {
  normalise_to([&](auto f) HWY_ATTR { store_row(y, n, stream, f); }, x, stats, affine, ahead);
}

void Normalise(const float* x, float* y, int64_t n, const RowStats& stats, const Affine& affine, bool stream) {
  NormaliseRow(x, y, n, stats, affine, stream, {});
}

void NormRows(const float* x, float* y, int64_t rows, int64_t cols, const Affine& affine, bool centred, double eps,
              bool stream, Ahead ahead) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const RowStats stats = StatsOfRow(x, cols, centred, eps);
    NormaliseRow(x, y, cols, stats, affine, stream, ahead);
    if (ahead.a != nullptr) ahead.a += cols;
    if (ahead.b != nullptr) ahead.b += cols;
  }
}

template <bool kBf16>
HWY_INLINE void half_rows(const uint16_t* x, float* v, uint16_t* y, int64_t rows, int64_t cols, const Affine& affine,
                          bool centred, double eps, bool stream) {
  const F32 d;
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    VF a = hn::Zero(d), b = a;
    widen_row<kBf16>(x, cols, v, 0, a, b, [](VF s, VF w) HWY_ATTR { return hn::Add(s, w); });
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
    const RowStats stats = stats_of_row(v, cols, centred ? sum / static_cast<float>(cols) : 0, centred, eps);
    normalise_to([&](auto f) HWY_ATTR { narrow_row<kBf16>(y, cols, stream, f); }, v, stats, affine,
                 {.a = reinterpret_cast<const float*>(x + cols), .element = sizeof(uint16_t)});
  }
}

void HalfNormRows(bool bf16, const uint16_t* x, float* v, uint16_t* y, int64_t rows, int64_t cols, const Affine& affine,
                  bool centred, double eps, bool stream) {
  if (bf16)
    half_rows<true>(x, v, y, rows, cols, affine, centred, eps, stream);
  else
    half_rows<false>(x, v, y, rows, cols, affine, centred, eps, stream);
}

// Statistics of kVectors vectors of columns, in f32 as fast_stats takes them; false where f32 does not hold them.
template <int kVectors>
HWY_INLINE bool fast_column_stats(const float* v, int64_t cols, int64_t width, int64_t left, double eps, float* high,
                                  float* low, float* r) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr size_t kAll = kVectors * hn::MaxLanes(F32());
  const auto load = [&](int64_t c, int k)
                        HWY_ATTR { return load_n(d, v + c * width + k * lanes, left - k * lanes, 0.0f); };
  VF mean[kVectors];
  for (VF& m : mean) m = hn::Zero(d);
  for (int64_t c = 0; c < cols; ++c)
    for (int k = 0; k < kVectors; ++k) mean[k] = hn::Add(mean[k], load(c, k));
  const auto count = static_cast<double>(cols);
  for (VF& m : mean) m = hn::Mul(m, hn::Set(d, static_cast<float>(1 / count)));
  double offs[kAll] = {}, squares[kAll] = {};
  constexpr int64_t kPiece = 64;  // short enough for sums in f32
  for (int64_t begin = 0; begin < cols; begin += kPiece) {
    VF o[kVectors], s[kVectors];
    for (int k = 0; k < kVectors; ++k) o[k] = s[k] = hn::Zero(d);
    for (int64_t c = begin; c < std::min(cols, begin + kPiece); ++c)
      for (int k = 0; k < kVectors; ++k) {
        const VF centred = hn::Sub(load(c, k), mean[k]);
        o[k] = hn::Add(o[k], centred);
        s[k] = hn::MulAdd(centred, centred, s[k]);
      }
    HWY_ALIGN float of[kAll], sf[kAll];
    for (int k = 0; k < kVectors; ++k) hn::Store(o[k], d, of + k * lanes), hn::Store(s[k], d, sf + k * lanes);
    for (int64_t i = 0; i < kVectors * lanes; ++i)
      offs[i] += static_cast<double>(of[i]), squares[i] += static_cast<double>(sf[i]);
  }
  HWY_ALIGN float about[kAll];
  for (int k = 0; k < kVectors; ++k) hn::Store(mean[k], d, about + k * lanes);
  for (int64_t i = 0; i < std::min(left, kVectors * lanes); ++i) {
    const double off = offs[i] / count;
    if (!(squares[i] / count > 1e-25 && squares[i] < 1e37) || off * off * 16 > squares[i] / count) return false;
    const RowStats stats = row_stats(static_cast<double>(about[i]) + off, squares[i] - off * off * count, count, eps);
    high[i] = stats.mean, low[i] = stats.rest, r[i] = stats.r;
  }
  return true;
}

// The same in double, one column after the other.
HWY_INLINE void column_stats(const float* v, int64_t cols, int64_t width, int64_t n, double eps, float* high,
                             float* low, float* r) {
  const auto count = static_cast<double>(cols);
  for (int64_t i = 0; i < n; ++i) {
    double mean = 0, squares = 0;
    for (int64_t c = 0; c < cols; ++c) mean += static_cast<double>(v[c * width + i]);
    mean /= count;
    for (int64_t c = 0; c < cols; ++c) {
      const double centred = static_cast<double>(v[c * width + i]) - mean;
      squares += centred * centred;
    }
    const RowStats stats = row_stats(mean, squares, count, eps);
    high[i] = stats.mean, low[i] = stats.rest, r[i] = stats.r;
  }
}

void NormColumns(float* v, int64_t cols, int64_t width, const float* gamma, const float* beta, double eps) {
  const F32 f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  HWY_ALIGN float high[kNormStrip], low[kNormStrip], r[kNormStrip];
  for (int64_t i = 0; i < width;) {
    const int64_t left = width - i;
    const bool wide = left >= 4 * lanes;
    if (!(wide ? fast_column_stats<4>(v + i, cols, width, left, eps, high + i, low + i, r + i)
               : fast_column_stats<1>(v + i, cols, width, left, eps, high + i, low + i, r + i)))
      column_stats(v + i, cols, width, std::min(left, wide ? 4 * lanes : lanes), eps, high + i, low + i, r + i);
    i += wide ? 4 * lanes : lanes;
  }
  for (int64_t c = 0; c < cols; ++c) {
    const VF g = hn::Set(f, gamma[c]), b = hn::Set(f, beta[c]);
    for (int64_t i = 0; i < width; i += lanes) {
      float* p = v + c * width + i;
      const VF x = load_n(f, p, width - i, 0.0f);
      const VF n = hn::Mul(hn::Sub(hn::Sub(x, hn::Load(f, high + i)), hn::Load(f, low + i)), hn::Load(f, r + i));
      store_n(f, hn::MulAdd(n, g, b), p, width - i);
    }
  }
}

void ResidualRows(const float* x, const float* residual, const float* bias, float* v, int64_t rows, int64_t cols) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto add = [&](const float* a, const float* b, float* to, int64_t n) HWY_ATTR {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
    if (i < n) store_n(d, hn::Add(load_n(d, a + i, n - i, 0.0f), load_n(d, b + i, n - i, 0.0f)), to + i, n - i);
  };
  if (bias == nullptr) return add(x, residual, v, rows * cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, residual += cols, v += cols) {
    add(x, residual, v, cols);
    add(v, bias, v, cols);
  }
}

BackwardSums BackwardRow(const float* x, const float* dy, int64_t n, const RowStats& stats, const Affine& affine,
                         float* dgamma, float* dbeta) {
  const F32 d;
  const F64 dd;
  const Half half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), doubles = static_cast<int64_t>(hn::Lanes(dd));
  const Scale scaled(stats);
  const VF scale = hn::Set(d, affine.scale);
  VD sum_h = hn::Zero(dd), sum_hn = sum_h;
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const VF g = load_n(d, dy + i, left, 0.0f), normal = scaled(load_n(d, x + i, left, stats.mean));
    if (dgamma != nullptr) store_n(d, hn::MulAdd(g, normal, load_n(d, dgamma + i, left, 0.0f)), dgamma + i, left);
    if (dbeta != nullptr) store_n(d, hn::Add(g, load_n(d, dbeta + i, left, 0.0f)), dbeta + i, left);
    const VF h = hn::Mul(g, affine.gamma == nullptr ? scale : load_n(d, affine.gamma + i, left, 0.0f));
    HWY_ALIGN float hs[hn::MaxLanes(d)], ns[hn::MaxLanes(d)];
    hn::Store(h, d, hs);
    hn::Store(normal, d, ns);
    const int64_t used = std::min(left, lanes);
    for (int64_t k = 0; k < used; k += doubles) {
      const VD hd = hn::PromoteTo(dd, load_n(half, hs + k, used - k, 0.0f));
      sum_h = hn::Add(sum_h, hd);
      sum_hn = hn::MulAdd(hd, hn::PromoteTo(dd, load_n(half, ns + k, used - k, 0.0f)), sum_hn);
    }
  }
  return {hn::GetLane(hn::SumOfLanes(dd, sum_h)), hn::GetLane(hn::SumOfLanes(dd, sum_hn))};
}

void BackwardDx(const float* x, const float* dy, float* dx, int64_t n, const RowStats& stats, const Affine& affine,
                float mean_h, float mean_hn) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Scale scaled(stats);
  const VF scale = hn::Set(d, affine.scale), mh = hn::Set(d, mean_h), mhn = hn::Set(d, mean_hn);
  const bool fetch = n <= 16384;  // longer rows would be gone before they are needed
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    if (fetch) {
      hwy::Prefetch(x + n + i);
      hwy::Prefetch(dy + n + i);
    }
    const VF h = hn::Mul(load_n(d, dy + i, left, 0.0f),
                         affine.gamma == nullptr ? scale : load_n(d, affine.gamma + i, left, 0.0f));
    const VF normal = scaled(load_n(d, x + i, left, 0.0f));
    store_n(d, hn::Mul(scaled.r, hn::NegMulAdd(normal, mhn, hn::Sub(h, mh))), dx + i, left);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(Sum);
HWY_EXPORT(Squares);
HWY_EXPORT(StatsOfRow);
HWY_EXPORT(Normalise);
HWY_EXPORT(NormRows);
HWY_EXPORT(HalfNormRows);
HWY_EXPORT(NormColumns);
HWY_EXPORT(ResidualRows);
HWY_EXPORT(BackwardRow);
HWY_EXPORT(BackwardDx);

RowStats row_stats(double mean, double squares, double count, double eps) {
  RowStats s;
  s.mean = static_cast<float>(mean);
  s.rest = static_cast<float>(mean - static_cast<double>(s.mean));
  s.r = static_cast<float>(1 / std::sqrt(squares / count + eps));
  return s;
}
double sum_of_row(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(Sum)(x, n); }
double squares_of_row(const float* x, int64_t n, double mean) { return HWY_DYNAMIC_DISPATCH(Squares)(x, n, mean); }
RowStats stats_of_row(const float* x, int64_t n, bool centred, double eps) {
  return HWY_DYNAMIC_DISPATCH(StatsOfRow)(x, n, centred, eps);
}
void normalise(const float* x, float* y, int64_t n, const RowStats& stats, const Affine& affine, bool stream) {
  HWY_DYNAMIC_DISPATCH(Normalise)(x, y, n, stats, affine, stream);
}
void norm_rows(const float* x, float* y, int64_t rows, int64_t cols, const Affine& affine, bool centred, double eps,
               bool stream, Ahead ahead) {
  HWY_DYNAMIC_DISPATCH(NormRows)(x, y, rows, cols, affine, centred, eps, stream, ahead);
}
void norm_half_rows(bool bf16, const uint16_t* x, float* v, uint16_t* y, int64_t rows, int64_t cols,
                    const Affine& affine, bool centred, double eps, bool stream) {
  HWY_DYNAMIC_DISPATCH(HalfNormRows)(bf16, x, v, y, rows, cols, affine, centred, eps, stream);
}
void norm_columns(float* v, int64_t cols, int64_t width, const float* gamma, const float* beta, double eps) {
  HWY_DYNAMIC_DISPATCH(NormColumns)(v, cols, width, gamma, beta, eps);
}
void residual_rows(const float* x, const float* residual, const float* bias, float* v, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(ResidualRows)(x, residual, bias, v, rows, cols);
}
BackwardSums norm_backward_sums(const float* x, const float* dy, int64_t n, const RowStats& stats, const Affine& affine,
                                float* dgamma, float* dbeta) {
  return HWY_DYNAMIC_DISPATCH(BackwardRow)(x, dy, n, stats, affine, dgamma, dbeta);
}
void norm_backward_dx(const float* x, const float* dy, float* dx, int64_t n, const RowStats& stats,
                      const Affine& affine, float mean_h, float mean_hn) {
  HWY_DYNAMIC_DISPATCH(BackwardDx)(x, dy, dx, n, stats, affine, mean_h, mean_hn);
}

}  // namespace rlx::cpu
#endif
