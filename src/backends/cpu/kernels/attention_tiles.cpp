#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention_tiles.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/kernels/attention_tiles.h"
#include "backends/cpu/simd/tail-inl.h"
#include "backends/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;

// Vectors by rows of accumulators: as many as the registers hold beside a row of b and a broadcast of a.
#if HWY_TARGET == HWY_SCALAR
constexpr int kVectors = 1;
#elif HWY_TARGET == HWY_AVX2
constexpr int kVectors = 2;
#else
constexpr int kVectors = 4;
#endif
constexpr int kTileHeight = 6;

template <int kHeight, int kWidth>
HWY_INLINE void product_tile(const TileProduct& p, int64_t i, int64_t x) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = p.a + i * p.ai;
  const float* b = p.b + x;
  float* c = p.c + i * p.c_stride + x;
  const int64_t ai = p.ai, ak = p.ak, b_stride = p.b_stride;
  VF acc[kHeight][kWidth];
  for (int h = 0; h < kHeight; ++h)
    for (int w = 0; w < kWidth; ++w)
      acc[h][w] = p.accumulate ? hn::LoadU(d, c + h * p.c_stride + w * lanes) : hn::Zero(d);
  for (int64_t k = 0; k < p.k; ++k, a += ak, b += b_stride) {
    VF row[kWidth];
    for (int w = 0; w < kWidth; ++w) row[w] = hn::LoadU(d, b + w * lanes);
    for (int h = 0; h < kHeight; ++h) {
      const VF factor = hn::Set(d, a[h * ai]);
      for (int w = 0; w < kWidth; ++w) acc[h][w] = hn::MulAdd(factor, row[w], acc[h][w]);
    }
  }
  for (int h = 0; h < kHeight; ++h)
    for (int w = 0; w < kWidth; ++w) hn::StoreU(acc[h][w], d, c + h * p.c_stride + w * lanes);
}

template <int kHeight>
HWY_INLINE void product_rows(const TileProduct& p, int64_t i) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  for (; x + kVectors * lanes <= p.n; x += kVectors * lanes) product_tile<kHeight, kVectors>(p, i, x);
  if constexpr (kVectors > 2)
    for (; x + 2 * lanes <= p.n; x += 2 * lanes) product_tile<kHeight, 2>(p, i, x);
  if constexpr (kVectors > 1)
    for (; x < p.n; x += lanes) product_tile<kHeight, 1>(p, i, x);
}

void Multiply(const TileProduct& p) {
  int64_t i = 0;
  for (; i + kTileHeight <= p.m; i += kTileHeight) product_rows<kTileHeight>(p, i);
  for (; i + 2 <= p.m; i += 2) product_rows<2>(p, i);
  for (; i < p.m; ++i) product_rows<1>(p, i);
}

template <int kRows, int kKeys>
HWY_INLINE void dot_tile(const RowDots& p, int64_t r, int64_t j) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* q = p.q + r * p.q_stride;
  const float* k = p.k + j * p.k_stride;
  VF acc[kRows][kKeys];
  for (auto& row : acc)
    for (VF& v : row) v = hn::Zero(d);
  const auto step = [&](int64_t x, int64_t left) HWY_ATTR {
    VF row[kRows];
    for (int a = 0; a < kRows; ++a) row[a] = load_n(d, q + a * p.q_stride + x, left, 0.0f);
    for (int b = 0; b < kKeys; ++b) {
      const VF key = load_n(d, k + b * p.k_stride + x, left, 0.0f);
      for (int a = 0; a < kRows; ++a) acc[a][b] = hn::MulAdd(row[a], key, acc[a][b]);
    }
  };
  int64_t x = 0;
  for (; x + lanes <= p.width; x += lanes) step(x, lanes);
  if (x < p.width) step(x, p.width - x);
  for (int a = 0; a < kRows; ++a)
    for (int b = 0; b < kKeys; ++b) p.s[(r + a) * p.s_stride + j + b] = hn::GetLane(hn::SumOfLanes(d, acc[a][b]));
}

template <int kRows>
HWY_INLINE void dot_rows(const RowDots& p, int64_t r) {
  int64_t j = 0;
  for (; j + 4 <= p.keys; j += 4) dot_tile<kRows, 4>(p, r, j);
  for (; j < p.keys; ++j) dot_tile<kRows, 1>(p, r, j);
}

void Dot(const RowDots& p) {
  int64_t r = 0;
  for (; r + 4 <= p.rows; r += 4) dot_rows<4>(p, r);
  for (; r < p.rows; ++r) dot_rows<1>(p, r);
}

// exp for x <= 0; what would be denormal is 0, NaN stays NaN. Shorter than exp-inl.h's: adding 1.5 * 2^23 rounds x / ln
// 2 to an integer that then lies in the lowest bits.
HWY_INLINE VF exp_of_negative(F32 d, VF x) {
  const hn::RebindToSigned<F32> di;
  const VF magic = hn::Set(d, 12582912.0f);
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const VF n = hn::Sub(shifted, magic);
  const VF r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  VF p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Mul(p, hn::BitCast(d, power)));
}

// By a polynomial (Cephes) below 0.625, else 1 - 2 / (exp(2x) + 1).
HWY_INLINE VF tanh(F32 d, VF x) {
  const VF one = hn::Set(d, 1.0f), size = hn::Abs(x), square = hn::Mul(x, x);
  VF p = hn::MulAdd(hn::Set(d, -5.70498872745e-3f), square, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, square, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, square, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, square, hn::Set(d, -3.33332819422e-1f));
  p = hn::MulAdd(hn::Mul(p, square), x, x);
  const VF e = exp_of_negative(d, hn::Mul(size, hn::Set(d, -2.0f)));  // exp(-2|x|): no overflow
  const VF large = hn::CopySignToAbs(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), p, large);  // NaN takes the second, which is NaN
}

HWY_INLINE VF finished_score(F32 d, const SoftmaxStep& p, VF s, VF mask) {
  if (p.softcap > 0) {
    const VF cap = hn::Set(d, p.softcap);
    s = hn::Mul(cap, tanh(d, hn::Div(s, cap)));
  }
  if (p.mask == nullptr) return s;
  if (p.mask_adds) return hn::Add(s, mask);
  return hn::IfThenElse(hn::Eq(mask, hn::Set(d, -std::numeric_limits<float>::infinity())), mask, s);
}

HWY_INLINE VF weight(F32 d, const SoftmaxStep& p, VF s, VF top) {
  const VF w = exp_of_negative(d, hn::Sub(s, top));
  if (!p.keep_tiny) return w;
  const VF tiny = hn::Set(d, 1e-37f);
  const VF kept = hn::IfThenElse(hn::Lt(w, tiny), tiny, w);
  return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, -std::numeric_limits<float>::infinity())), kept);
}

void SoftmaxColumns(const SoftmaxStep& p) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const bool plain = p.softcap <= 0 && p.mask == nullptr;
  for (int64_t q = 0; q < p.queries; q += lanes) {
    float* s = p.s + q;
    VF top = lowest;
    if (plain) {
      VF other = lowest;
      int64_t j = 0;
      for (; j + 2 <= p.keys; j += 2) {
        top = hn::Max(top, hn::LoadU(d, s + j * p.s_stride));
        other = hn::Max(other, hn::LoadU(d, s + (j + 1) * p.s_stride));
      }
      if (j < p.keys) top = hn::Max(top, hn::LoadU(d, s + j * p.s_stride));
      top = hn::Max(top, other);
    } else {
      for (int64_t j = 0; j < p.keys; ++j) {
        const VF mask = p.mask == nullptr ? lowest
                        : p.mask_shared   ? hn::Set(d, p.mask[j])
                                          : hn::LoadU(d, p.mask + j * p.mask_stride + q);
        const VF v = finished_score(d, p, hn::LoadU(d, s + j * p.s_stride), mask);
        hn::StoreU(v, d, s + j * p.s_stride);
        top = hn::Max(top, v);
      }
    }
    const VF before = hn::LoadU(d, p.max + q), after = hn::Max(before, top);
    const VF base = hn::IfThenZeroElse(hn::Eq(after, lowest), after);  // no key yet: exp(-inf - 0) = 0
    VF sum = hn::Zero(d);
    for (int64_t j = 0; j < p.keys; ++j) {
      const VF w = weight(d, p, hn::LoadU(d, s + j * p.s_stride), base);
      hn::StoreU(w, d, s + j * p.s_stride);
      sum = hn::Add(sum, w);
    }
    const VF rescale = exp_of_negative(d, hn::Sub(before, base));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, p.sum + q), rescale, sum), d, p.sum + q);
    hn::StoreU(after, d, p.max + q);
    if (hn::AllTrue(d, hn::Eq(rescale, hn::Set(d, 1.0f)))) continue;
    for (int64_t x = 0; x < p.width; ++x) {
      float* o = p.o + x * p.o_stride + q;
      hn::StoreU(hn::Mul(hn::LoadU(d, o), rescale), d, o);
    }
  }
}

void SoftmaxRows(const SoftmaxStep& p) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float lowest = -std::numeric_limits<float>::infinity();
  for (int64_t q = 0; q < p.queries; ++q) {
    float* s = p.s + q * p.s_stride;
    const float* mask = p.mask == nullptr ? s : p.mask + (p.mask_shared ? 0 : q * p.mask_stride);
    VF top = hn::Set(d, lowest);
    for (int64_t j = 0; j < p.keys; j += lanes) {
      const int64_t n = p.keys - j;
      const VF v = finished_score(d, p, load_n(d, s + j, n, 0.0f), load_n(d, mask + j, n, 0.0f));
      store_n(d, v, s + j, n);
      // Lanes behind the row do not count.
      top = hn::Max(top, n >= lanes ? v : load_n(d, s + j, n, lowest));
    }
    const VF before = hn::Set(d, p.max[q]), after = hn::Max(before, hn::MaxOfLanes(d, top));
    const VF base = hn::IfThenZeroElse(hn::Eq(after, hn::Set(d, lowest)), after);
    VF sum = hn::Zero(d);
    for (int64_t j = 0; j < p.keys; j += lanes) {
      const VF w = weight(d, p, load_n(d, s + j, p.keys - j, lowest), base);
      store_n(d, w, s + j, p.keys - j);
      sum = hn::Add(sum, p.keys - j >= lanes ? w : load_n(d, s + j, p.keys - j, 0.0f));
    }
    const VF rescale = exp_of_negative(d, hn::Sub(before, base));
    p.sum[q] = hn::GetLane(hn::MulAdd(hn::Set(d, p.sum[q]), rescale, hn::SumOfLanes(d, sum)));
    p.max[q] = hn::GetLane(after);
    for (int64_t x = 0; x < p.width; x += lanes) {
      float* o = p.o + q * p.o_stride + x;
      store_n(d, hn::Mul(load_n(d, o, p.width - x, 0.0f), rescale), o, p.width - x);
    }
  }
}

void PositionTile(const float* positions, float window, float* tile, int64_t stride, int64_t keys, int64_t queries) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Set(d, -std::numeric_limits<float>::infinity()), reach = hn::Set(d, window);
  for (int64_t q = 0; q < queries; q += lanes) {
    const VF position = hn::LoadU(d, positions + q), first = hn::Sub(position, reach);
    for (int64_t j = 0; j < keys; ++j) {
      const VF key = hn::Set(d, static_cast<float>(j));
      const auto seen = hn::And(hn::Le(key, position), hn::Le(first, key));
      hn::StoreU(hn::IfThenElse(seen, hn::Zero(d), lowest), d, tile + j * stride + q);
    }
  }
}

int64_t ThresholdMask(float* values, int64_t n) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VF lowest = hn::Set(d, -std::numeric_limits<float>::infinity()), half = hn::Set(d, 0.5f);
  size_t kept = 0;
  for (int64_t i = 0; i < n; i += lanes) {
    const auto keep = hn::Ge(load_n(d, values + i, n - i, 0.0f), half);
    kept += hn::CountTrue(d, keep);
    store_n(d, hn::IfThenElse(keep, hn::Zero(d), lowest), values + i, n - i);
  }
  return static_cast<int64_t>(kept);
}

void TransposeTile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r += 4)
    for (int64_t c = 0; c < cols; c += 4)
      transpose_square<float>(reinterpret_cast<const char*>(src + r * src_stride + c), src_stride * 4,
                              reinterpret_cast<char*>(dst + c * dst_stride + r), dst_stride * 4);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(Multiply);
HWY_EXPORT(Dot);
HWY_EXPORT(SoftmaxColumns);
HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(PositionTile);
HWY_EXPORT(ThresholdMask);
HWY_EXPORT(TransposeTile);

void multiply(const TileProduct& p) { HWY_DYNAMIC_DISPATCH(Multiply)(p); }
void dot(const RowDots& p) { HWY_DYNAMIC_DISPATCH(Dot)(p); }
void softmax_columns(const SoftmaxStep& p) { HWY_DYNAMIC_DISPATCH(SoftmaxColumns)(p); }
void softmax_rows(const SoftmaxStep& p) { HWY_DYNAMIC_DISPATCH(SoftmaxRows)(p); }
void position_tile(const float* positions, float window, float* tile, int64_t stride, int64_t keys, int64_t queries) {
  HWY_DYNAMIC_DISPATCH(PositionTile)(positions, window, tile, stride, keys, queries);
}
int64_t threshold_mask(float* values, int64_t n) { return HWY_DYNAMIC_DISPATCH(ThresholdMask)(values, n); }
void transpose_tile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(TransposeTile)(src, src_stride, dst, dst_stride, rows, cols);
}

}  // namespace rlx::cpu
#endif
