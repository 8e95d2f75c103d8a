#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/decode.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/quant/decode.h"
#include "backends/cpu/quant/small_floats.h"
#include "backends/cpu/round_up.h"
#include "backends/cpu/simd/convert.h"
#include "backends/cpu/simd/half-inl.h"
#include "rlx/error.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using quant::SideWeight;

// Plain loops, which the compiler vectorises for each target. Products of a half and small integers are exact in f32,
// so every value is rounded once, as in decode_blocks.
HWY_INLINE float half_at(const uint8_t* p) { return half_to_float(static_cast<uint16_t>(p[0] | p[1] << 8)); }

HWY_INLINE void nibbles(const uint8_t* qs, int offset, float d, float m, float* out) {
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((qs[j] & 15) - offset) * d + m;
    out[j + 16] = static_cast<float>((qs[j] >> 4) - offset) * d + m;
  }
}

HWY_INLINE void five_bits(const uint8_t* qs, const uint8_t* qh, int offset, float d, float m, float* out) {
  uint32_t high;
  std::memcpy(&high, qh, 4);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((qs[j] & 15) + static_cast<int>(high >> j << 4 & 16) - offset) * d + m;
    out[j + 16] = static_cast<float>((qs[j] >> 4) + static_cast<int>(high >> (j + 12) & 16) - offset) * d + m;
  }
}

HWY_INLINE void bytes_of(const uint8_t* qs, int count, float d, float* out) {
  for (int j = 0; j < count; ++j) out[j] = static_cast<float>(static_cast<int8_t>(qs[j])) * d;
}

HWY_INLINE void levels(const uint8_t* qs, float d, float* out) {
  constexpr float kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  for (int j = 0; j < 16; ++j) {
    out[j] = kLevels[qs[j] & 15] * d;
    out[j + 16] = kLevels[qs[j] >> 4] * d;
  }
}

HWY_INLINE void scale_min(const uint8_t* b, int s, float* scale, float* min) {
  const uint8_t* p = b + 4;
  const int sc = s < 4 ? p[s] & 63 : (p[s + 4] & 15) | p[s - 4] >> 6 << 4;
  const int mn = s < 4 ? p[s + 4] & 63 : p[s + 4] >> 4 | p[s] >> 6 << 4;
  *scale = half_at(b) * static_cast<float>(sc);
  *min = half_at(b + 2) * static_cast<float>(mn);
}

HWY_INLINE void q4k(const uint8_t* b, float* out) {
  for (int s = 0; s < 8; ++s) {
    float d, m;
    scale_min(b, s, &d, &m);
    const uint8_t* qs = b + 16 + 32 * (s / 2);
    const int shift = 4 * (s % 2);
    for (int l = 0; l < 32; ++l) out[32 * s + l] = static_cast<float>(qs[l] >> shift & 15) * d - m;
  }
}

HWY_INLINE void q5k(const uint8_t* b, float* out) {
  for (int s = 0; s < 8; ++s) {
    float d, m;
    scale_min(b, s, &d, &m);
    const uint8_t* qs = b + 48 + 32 * (s / 2);
    const int shift = 4 * (s % 2);
    for (int l = 0; l < 32; ++l)
      out[32 * s + l] = static_cast<float>((qs[l] >> shift & 15) | (b[16 + l] >> s & 1) << 4) * d - m;
  }
}

HWY_INLINE void q2k(const uint8_t* b, float* out) {
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int i = 0; i < 16; ++i) {
    const float scale = d * static_cast<float>(b[i] & 15), min = dmin * static_cast<float>(b[i] >> 4);
    const uint8_t* qs = b + 16 + 32 * (i / 8) + 16 * (i % 2);
    const int shift = 2 * (i % 8 / 2);
    for (int l = 0; l < 16; ++l) out[16 * i + l] = static_cast<float>(qs[l] >> shift & 3) * scale - min;
  }
}

HWY_INLINE void q3k(const uint8_t* b, float* out) {
  const float d = half_at(b + 108);
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? b[96 + i] & 15 : b[88 + i] >> 4, high = b[104 + i % 4] >> (2 * (i / 4)) & 3;
    const float scale = d * static_cast<float>(low + 16 * high - 32);
    const uint8_t *qs = b + 32 + 32 * (i / 8) + 16 * (i % 2), *mask = b + 16 * (i % 2);
    const int shift = 2 * (i % 8 / 2), bit = i / 2;
    for (int l = 0; l < 16; ++l)
      out[16 * i + l] = static_cast<float>(((qs[l] >> shift & 3) | (mask[l] >> bit & 1) << 2) - 4) * scale;
  }
}

HWY_INLINE void q6k(const uint8_t* b, float* out) {
  const float d = half_at(b + 208);
  for (int i = 0; i < 16; ++i) {
    const int h = i / 8, g = i % 8 / 2, l0 = 16 * (i % 2);
    const float scale = d * static_cast<float>(static_cast<int8_t>(b[192 + i]));
    const uint8_t *ql = b + 64 * h + 32 * (g & 1) + l0, *qh = b + 128 + 32 * h + l0;
    const int shift = g < 2 ? 0 : 4;
    for (int l = 0; l < 16; ++l)
      out[16 * i + l] = static_cast<float>(((ql[l] >> shift & 15) | (qh[l] >> (2 * g) & 3) << 4) - 32) * scale;
  }
}

HWY_INLINE void iq4xs(const uint8_t* b, float* out) {
  const int high = b[2] | b[3] << 8;
  for (int i = 0; i < 8; ++i) {
    const int scale = (b[4 + i / 2] >> (4 * (i % 2)) & 15) + 16 * (high >> (2 * i) & 3) - 32;
    levels(b + 8 + 16 * i, half_at(b) * static_cast<float>(scale), out + 32 * i);
  }
}

template <class F>
HWY_INLINE void each_block(const uint8_t* b, int64_t k, int64_t elems, int64_t bytes, float* out, F f) {
  for (; k > 0; k -= elems, b += bytes, out += elems) f(b, out);
}

void DecodeRow(Scheme scheme, const uint8_t* p, int64_t k, float* out) {
  const auto with = [&](int64_t elems, int64_t bytes, auto f) HWY_ATTR { each_block(p, k, elems, bytes, out, f); };
  using B = const uint8_t*;
  switch (scheme) {
    case Scheme::kGgufQ4_0:
      return with(32, 18, [](B b, float* o) HWY_ATTR { nibbles(b + 2, 8, half_at(b), -0.0f, o); });
    case Scheme::kGgufQ4_1:
      return with(32, 20, [](B b, float* o) HWY_ATTR { nibbles(b + 4, 0, half_at(b), half_at(b + 2), o); });
    case Scheme::kGgufQ5_0:
      return with(32, 22, [](B b, float* o) HWY_ATTR { five_bits(b + 6, b + 2, 16, half_at(b), -0.0f, o); });
    case Scheme::kGgufQ5_1:
      return with(32, 24, [](B b, float* o) HWY_ATTR { five_bits(b + 8, b + 4, 0, half_at(b), half_at(b + 2), o); });
    case Scheme::kGgufQ8_0: return with(32, 34, [](B b, float* o) HWY_ATTR { bytes_of(b + 2, 32, half_at(b), o); });
    case Scheme::kGgufQ8_1: return with(32, 36, [](B b, float* o) HWY_ATTR { bytes_of(b + 4, 32, half_at(b), o); });
    case Scheme::kGgufIq4Nl: return with(32, 18, [](B b, float* o) HWY_ATTR { levels(b + 2, half_at(b), o); });
    case Scheme::kGgufQ2K: return with(256, 84, [](B b, float* o) HWY_ATTR { q2k(b, o); });
    case Scheme::kGgufQ3K: return with(256, 110, [](B b, float* o) HWY_ATTR { q3k(b, o); });
    case Scheme::kGgufQ4K: return with(256, 144, [](B b, float* o) HWY_ATTR { q4k(b, o); });
    case Scheme::kGgufQ5K: return with(256, 176, [](B b, float* o) HWY_ATTR { q5k(b, o); });
    case Scheme::kGgufQ6K: return with(256, 210, [](B b, float* o) HWY_ATTR { q6k(b, o); });
    case Scheme::kGgufIq4Xs: return with(256, 136, [](B b, float* o) HWY_ATTR { iq4xs(b, o); });
    case Scheme::kGgufQ8K:
      return with(256, 292, [](B b, float* o) HWY_ATTR {
        float d;
        std::memcpy(&d, b, 4);
        bytes_of(b + 4, 256, d, o);
      });
    default: RLX_ASSERT(false && "a scheme without blocks");
  }
}

// kX rows of x with kW rows of w: each vector that is loaded serves several products.
template <int kX, int kW>
HWY_INLINE void dot_block(const float* const* x, const float* w, int64_t k, float* const* y, int64_t column) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kX][kW];
  for (auto& row : sum)
    for (auto& s : row) s = hn::Zero(d);
  for (int64_t c = 0; c < k; c += lanes) {  // k is a multiple of 32
    hn::Vec<decltype(d)> b[kW];
    for (int j = 0; j < kW; ++j) b[j] = hn::LoadU(d, w + j * k + c);
    for (int i = 0; i < kX; ++i) {
      const auto a = hn::LoadU(d, x[i] + c);
      for (int j = 0; j < kW; ++j) sum[i][j] = hn::MulAdd(a, b[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kX; ++i)
    for (int j = 0; j < kW; ++j) y[i][column + j] = hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
}

template <int kW>
HWY_INLINE void dot_columns(const float* const* x, int64_t rows, const float* w, int64_t k, float* const* y,
                            int64_t column) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) dot_block<4, kW>(x + i, w, k, y + i, column);
  for (; i < rows; ++i) dot_block<1, kW>(x + i, w, k, y + i, column);
}

void DotRows(const float* const* x, int64_t x_rows, const float* w, int64_t w_rows, int64_t k, float* const* y) {
  int64_t j = 0;
  for (; j + 4 <= w_rows; j += 4) dot_columns<4>(x, x_rows, w + j * k, k, y, j);
  for (; j < w_rows; ++j) dot_columns<1>(x, x_rows, w + j * k, k, y, j);
}

HWY_INLINE int nibble_at(const uint8_t* p, int64_t index) { return p[index / 2] >> (4 * (index % 2)) & 15; }

void DecodeSide(const SideWeight& w, int64_t k, int64_t column, int64_t count, float* out) {
  const int64_t first = k * w.n + column, row = k / w.block * w.n + column;
  const uint8_t* codes = w.codes + first;
  switch (w.scheme) {
    case Scheme::kInt8:
      for (int64_t j = 0; j < count; ++j) out[j] = static_cast<float>(static_cast<int8_t>(codes[j])) * w.scale[row + j];
      return;
    case Scheme::kInt8Asym:
      for (int64_t j = 0; j < count; ++j)
        out[j] = (static_cast<float>(static_cast<int8_t>(codes[j])) - w.zero[row + j]) * w.scale[row + j];
      return;
    case Scheme::kInt4:
      for (int64_t j = 0; j < count; ++j)
        out[j] = static_cast<float>((nibble_at(w.codes, first + j) ^ 8) - 8) * w.scale[row + j];
      return;
    case Scheme::kFp8E4m3:
      for (int64_t j = 0; j < count; ++j) out[j] = e4m3_to_float(codes[j]);
      break;
    case Scheme::kFp8E5m2:
      for (int64_t j = 0; j < count; ++j) out[j] = e5m2_to_float(codes[j]);
      break;
    case Scheme::kNvfp4: {
      constexpr float kLevels[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
      for (int64_t j = 0; j < count; ++j)
        out[j] = kLevels[nibble_at(w.codes, first + j)] * e4m3_to_float(w.scale8[row + j]) * w.global;
      return;
    }
    default: RLX_ASSERT(false && "a scheme without side tensors");
  }
  if (w.scales == 1)
    for (int64_t j = 0; j < count; ++j) out[j] *= w.scale[0];
  else
    for (int64_t j = 0; j < count; ++j) out[j] *= w.scale[column + j];
}

// 2 * Lanes codes as f32, e4m3 as 2^-8 of its value: an fp8 shifted to the place of an F16's exponent is one.
#if HWY_TARGET == HWY_SCALAR
template <bool kE5m2, class D>
HWY_INLINE void load_fp8(D d, const uint8_t* p, hn::Vec<D> v[2]) {
  for (int i = 0; i < 2; ++i) v[i] = hn::Set(d, kE5m2 ? e5m2_to_float(p[i]) : e4m3_to_float(p[i]) * 0x1p-8f);
}
#else
template <bool kE5m2, class D>
HWY_INLINE void load_fp8(D d, const uint8_t* p, hn::Vec<D> v[2]) {
  const hn::ScalableTag<uint16_t> d16;
  const hn::RebindToSigned<decltype(d16)> i16;
  const HalfBits<D> half;
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, decltype(d16)>(), p);
  hn::Vec<decltype(d16)> bits;
  if constexpr (kE5m2) {
    bits = hn::ShiftLeft<8>(hn::PromoteTo(d16, bytes));
  } else {
    const auto wide = hn::PromoteTo(i16, hn::BitCast(hn::Rebind<int8_t, decltype(d16)>(), bytes));
    bits = hn::And(hn::ShiftLeft<7>(hn::BitCast(d16, wide)), hn::Set(d16, 0xBFFF));
    const auto is_nan = hn::Eq(hn::And(bits, hn::Set(d16, 0x7FFF)), hn::Set(d16, 0x3F80));
    bits = hn::IfThenElse(is_nan, hn::Set(d16, 0x7E00), bits);
  }
  v[0] = f16_to_f32(d, hn::LowerHalf(half, bits));
  v[1] = f16_to_f32(d, hn::UpperHalf(half, bits));
}
#endif

// y[r][0 .. 2 * Lanes) += the products with kDepth rows of codes.
template <bool kE5m2, int kDepth>
HWY_INLINE void add_fp8(const uint8_t* const* codes, const float* const* x, int64_t x_rows, int64_t k, float* const* y,
                        int64_t column) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> w[kDepth][2];
  for (int i = 0; i < kDepth; ++i) load_fp8<kE5m2>(d, codes[i], w[i]);
  for (int64_t r = 0; r < x_rows; ++r)
    for (int h = 0; h < 2; ++h) {
      float* to = y[r] + column + h * lanes;
      auto sum = hn::LoadU(d, to);
      for (int i = 0; i < kDepth; ++i) sum = hn::MulAdd(hn::Set(d, x[r][k + i]), w[i][h], sum);
      hn::StoreU(sum, d, to);
    }
}

template <bool kE5m2, int kDepth>
HWY_INLINE void add_fp8_rows(const uint8_t* codes, int64_t n, int64_t k, int64_t count, const float* const* x,
                             int64_t x_rows, float* const* y) {
  constexpr int64_t kRowsAhead = 16;  // into L2: in L1 rows that are a power of two apart push each other out
  const auto width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<float>()));
  const uint8_t* at[kDepth];
  int64_t j = 0;
  for (; j + width <= count; j += width) {
    for (int i = 0; i < kDepth; ++i) {
      at[i] = codes + i * n + j;
      if (j % 64 == 0) __builtin_prefetch(at[i] + kRowsAhead * n, 0, 2);
    }
    add_fp8<kE5m2, kDepth>(at, x, x_rows, k, y, j);
  }
  if (j == count) return;
  uint8_t last[kDepth][2 * hn::MaxLanes(hn::ScalableTag<float>())] = {};
  for (int i = 0; i < kDepth; ++i) {
    std::memcpy(last[i], codes + i * n + j, static_cast<size_t>(count - j));
    at[i] = last[i];
  }
  add_fp8<kE5m2, kDepth>(at, x, x_rows, k, y, j);
}

template <bool kE5m2>
HWY_INLINE void multiply_fp8_of(const uint8_t* codes, int64_t n, int64_t k, int64_t count, const float* const* x,
                                int64_t x_rows, float* const* y) {
  for (int64_t r = 0; r < x_rows; ++r) std::memset(y[r], 0, static_cast<size_t>(round_up(count, 64)) * sizeof(float));
  int64_t c = 0;
  for (; c + 4 <= k; c += 4) add_fp8_rows<kE5m2, 4>(codes + c * n, n, c, count, x, x_rows, y);
  for (; c < k; ++c) add_fp8_rows<kE5m2, 1>(codes + c * n, n, c, count, x, x_rows, y);
}

float MultiplyFp8(bool e5m2, const uint8_t* codes, int64_t n, int64_t k, int64_t count, const float* const* x,
                  int64_t x_rows, float* const* y) {
  if (e5m2)
    multiply_fp8_of<true>(codes, n, k, count, x, x_rows, y);
  else
    multiply_fp8_of<false>(codes, n, k, count, x, x_rows, y);
  return e5m2 ? 1 : 256;
}

template <int kX>
HWY_INLINE void multiply_rows(const float* const* x, const float* w, int64_t k, int64_t width, float* const* y) {
  const hn::CappedTag<float, 16> d;
  constexpr int kVectors = 2;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + kVectors * lanes <= width; j += kVectors * lanes) {
    hn::Vec<decltype(d)> sum[kX][kVectors];
    for (int i = 0; i < kX; ++i)
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::LoadU(d, y[i] + j + v * lanes);
    for (int64_t c = 0; c < k; ++c) {
      hn::Vec<decltype(d)> b[kVectors];
      for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, w + c * width + j + v * lanes);
      for (int i = 0; i < kX; ++i) {
        const auto a = hn::Set(d, x[i][c]);
        for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(a, b[v], sum[i][v]);
      }
    }
    for (int i = 0; i < kX; ++i)
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, y[i] + j + v * lanes);
  }
}

void MultiplyTile(const float* const* x, int64_t x_rows, const float* w, int64_t k, int64_t width, float* const* y) {
  int64_t i = 0;
  for (; i + 8 <= x_rows; i += 8) multiply_rows<8>(x + i, w, k, width, y + i);
  for (; i + 2 <= x_rows; i += 2) multiply_rows<2>(x + i, w, k, width, y + i);
  for (; i < x_rows; ++i) multiply_rows<1>(x + i, w, k, width, y + i);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(DecodeRow);
HWY_EXPORT(DotRows);
HWY_EXPORT(DecodeSide);
HWY_EXPORT(MultiplyFp8);
HWY_EXPORT(MultiplyTile);

namespace quant {

void decode_row(Scheme scheme, const uint8_t* bytes, int64_t k, float* out) {
  if (scheme == Scheme::kGgufF16 || scheme == Scheme::kGgufBf16)
    return to_f32(scheme == Scheme::kGgufF16 ? DType::F16 : DType::BF16, reinterpret_cast<const std::byte*>(bytes), 0,
                  out, k);
  HWY_DYNAMIC_DISPATCH(DecodeRow)(scheme, bytes, k, out);
}
void dot_rows(const float* const* x, int64_t x_rows, const float* w, int64_t w_rows, int64_t k, float* const* y) {
  HWY_DYNAMIC_DISPATCH(DotRows)(x, x_rows, w, w_rows, k, y);
}
void decode_side(const SideWeight& weight, int64_t k, int64_t column, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeSide)(weight, k, column, count, out);
}
float multiply_fp8(bool e5m2, const uint8_t* codes, int64_t n, int64_t k, int64_t count, const float* const* x,
                   int64_t x_rows, float* const* y) {
  return HWY_DYNAMIC_DISPATCH(MultiplyFp8)(e5m2, codes, n, k, count, x, x_rows, y);
}
void multiply_tile(const float* const* x, int64_t x_rows, const float* w, int64_t k, int64_t width, float* const* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyTile)(x, x_rows, w, k, width, y);
}

}  // namespace quant
}  // namespace rlx::cpu
#endif
