#define RLX_SIMD_VNNI
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/int8.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/quant/int8.h"
#include "backends/cpu/quant/small_floats.h"
//
#include "backends/cpu/quant/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace rlx::cpu::quant;

using F64 = hn::ScalableTag<double>;
using F32Half = hn::Rebind<float, F64>;
using I64 = hn::Rebind<int64_t, F64>;
using I32Half = hn::Rebind<int32_t, F64>;
using I8Part = hn::Rebind<int8_t, F64>;

// In double, as the oracle: a quotient that f32 rounds to a tie would go to the wrong code.
HWY_INLINE hn::Vec<F64> scale_at(const Steps& s, int64_t i) {
  const F64 d;
  if (s.scale_step == 0) return hn::Set(d, static_cast<double>(*s.scale));
  return hn::PromoteTo(d, hn::LoadU(F32Half(), s.scale + i));
}
HWY_INLINE hn::Vec<F64> zero_at(const Steps& s, int64_t i) {
  const F64 d;
  if (s.zero_step == 0) return hn::Set(d, static_cast<double>(*s.zero));
  return hn::ConvertTo(d, hn::LoadU(I64(), s.zero + i));
}

HWY_INLINE void quantize_vector(const float* x, const Steps& s, int64_t i, int8_t* q) {
  const F64 d;
  const auto zero = zero_at(s, i);
  const auto code = hn::Round(hn::Div(hn::PromoteTo(d, hn::LoadU(F32Half(), x)), scale_at(s, i)));
  const auto shifted = hn::IfThenElse(hn::IsNaN(code), zero, hn::Add(code, zero));
  const auto clamped = hn::Min(hn::Max(shifted, hn::Set(d, -128.0)), hn::Set(d, 127.0));
  hn::StoreU(hn::DemoteTo(I8Part(), hn::DemoteTo(I32Half(), clamped)), I8Part(), q);
}

HWY_INLINE void dequantize_vector(const int8_t* q, const Steps& s, int64_t i, float* y) {
  const F64 d;
  const auto code = hn::PromoteTo(d, hn::PromoteTo(I32Half(), hn::LoadU(I8Part(), q)));
  hn::StoreU(hn::DemoteTo(F32Half(), hn::Mul(hn::Sub(code, zero_at(s, i)), scale_at(s, i))), F32Half(), y);
}

// The last, partial vector goes through buffers.
template <class From, class To, class F>
HWY_INLINE void each_vector(const From* from, int64_t n, const Steps& steps, To* to, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F64()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(from + i, steps, i, to + i);
  if (i == n) return;
  constexpr size_t kMax = hn::MaxLanes(F64());
  From a[kMax] = {};
  To b[kMax];
  float scales[kMax];
  int64_t zeros[kMax] = {};
  std::fill(scales, scales + kMax, 1.0f);
  for (int64_t j = 0; j < n - i; ++j) {
    a[j] = from[i + j];
    scales[j] = steps.scale[(i + j) * steps.scale_step];
    zeros[j] = steps.zero[(i + j) * steps.zero_step];
  }
  f(a, Steps{scales, 1, zeros, 1}, 0, b);
  for (int64_t j = 0; j < n - i; ++j) to[i + j] = b[j];
}

void QuantizeRun(const float* x, int64_t n, const Steps& steps, int8_t* q) {
  each_vector(x, n, steps, q, [](const float* from, const Steps& s, int64_t i, int8_t* to) HWY_ATTR {
    quantize_vector(from, s, i, to);
  });
}

void DequantizeRun(const int8_t* q, int64_t n, const Steps& steps, float* y) {
  each_vector(q, n, steps, y, [](const int8_t* from, const Steps& s, int64_t i, float* to) HWY_ATTR {
    dequantize_vector(from, s, i, to);
  });
}

int64_t Int8Sum(const int8_t* x, int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n;) {  // 2^20 bytes fit 32 bits, and 32 bits vectorise well
    int32_t part = 0;
    for (const int64_t end = std::min(n, i + (1 << 20)); i < end; ++i) part += x[i];
    sum += part;
  }
  return sum;
}

#if HWY_TARGET == HWY_AVX3_DL
HWY_INLINE void store_ints(Ints v, int32_t* p) { _mm512_storeu_si512(p, v); }
#else
HWY_INLINE void store_ints(const Ints& v, int32_t* p) { std::memcpy(p, v.v, sizeof v); }
#endif

// Products of 32,768 elements of K at most fit 32 bits.
constexpr int64_t kChunk = 32768;

template <int kRows>
HWY_INLINE void int8_rows(const Int8Product& p, const uint8_t* group, const int32_t* bias, int64_t columns, int64_t k,
                          const int8_t* const* rows, const int64_t* row_sums, int8_t* y) {
  int64_t column_sums[kColumns], sums[kRows][kColumns];
  std::memcpy(column_sums, group, sizeof column_sums);
  const uint8_t* codes = group + sizeof column_sums;
  for (int r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c)
      sums[r][c] =
          (c < columns ? bias[c] : 0) - (128 + p.w_zp) * row_sums[r] - p.x_zp * column_sums[c] + k * p.x_zp * p.w_zp;
  for (int64_t k0 = 0; k0 < k; k0 += kChunk) {
    const int64_t depth = std::min(kChunk, k - k0);
    Ints acc[kRows];
    for (int r = 0; r < kRows; ++r) acc[r] = set(0);
    int64_t c = 0;
    for (; c + 4 <= depth; c += 4, codes += 64) {
      const Bytes w = load_bytes(codes);
      for (int r = 0; r < kRows; ++r) acc[r] = dot4(acc[r], w, rows[r] + k0 + c);
    }
    if (c < depth) {
      const Bytes w = load_bytes(codes);
      for (int r = 0; r < kRows; ++r) {
        int8_t last[4] = {};
        std::memcpy(last, rows[r] + k0 + c, static_cast<size_t>(std::min<int64_t>(3, depth - c)));
        acc[r] = dot4(acc[r], w, last);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      int32_t part[kColumns];
      store_ints(acc[r], part);
      for (int64_t j = 0; j < kColumns; ++j) sums[r][j] += part[j];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int64_t j = 0; j < kColumns; ++j) {
      const double value = std::nearbyint(static_cast<double>(sums[r][j]) * static_cast<double>(p.mult));
      y[r * kColumns + j] = static_cast<int8_t>(std::clamp(value + static_cast<double>(p.out_zp), -128.0, 127.0));
    }
}

void Int8Group(const Int8Product& p, const uint8_t* group, const int32_t* bias, int64_t columns, int64_t k,
               std::span<const int8_t* const> rows, const int64_t* row_sums, int8_t* y) {
  size_t r = 0;
  const auto run = [&]<int kRows>(std::integral_constant<int, kRows>) HWY_ATTR {
    for (; r + kRows <= rows.size(); r += kRows)
      int8_rows<kRows>(p, group, bias, columns, k, rows.data() + r, row_sums + r, y + r * kColumns);
  };
#if HWY_TARGET == HWY_AVX3_DL  // the others only have to be right
  run(std::integral_constant<int, 16>());
  run(std::integral_constant<int, 4>());
#endif
  run(std::integral_constant<int, 1>());
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(QuantizeRun);
HWY_EXPORT(DequantizeRun);
HWY_EXPORT(Int8Sum);
HWY_EXPORT(Int8Group);

namespace quant {

void quantize_run(const float* x, int64_t n, const Steps& steps, int8_t* q) {
  HWY_DYNAMIC_DISPATCH(QuantizeRun)(x, n, steps, q);
}
void dequantize_run(const int8_t* q, int64_t n, const Steps& steps, float* y) {
  HWY_DYNAMIC_DISPATCH(DequantizeRun)(q, n, steps, y);
}
int64_t int8_sum(const int8_t* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(Int8Sum)(x, n); }

void int8_group(const Int8Product& product, const uint8_t* group, const int32_t* bias, int64_t columns, int64_t k,
                std::span<const int8_t* const> rows, const int64_t* row_sums, int8_t* y) {
  HWY_DYNAMIC_DISPATCH(Int8Group)(product, group, bias, columns, k, rows, row_sums, y);
}

void pack_int8_group(const int8_t* w, int64_t k, int64_t columns, int64_t k_stride, int64_t n_stride, uint8_t* out) {
  int64_t sums[kColumns] = {};
  uint8_t* codes = out + sizeof sums;
  std::memset(codes, 128, static_cast<size_t>((k + 3) / 4 * 64));  // 0 behind the end
  for (int64_t i = 0; i < k; ++i)
    for (int64_t c = 0; c < columns; ++c) {
      const int8_t code = w[i * k_stride + c * n_stride];
      sums[c] += code;
      codes[i / 4 * 64 + c * 4 + i % 4] = static_cast<uint8_t>(code + 128);
    }
  std::memcpy(out, sums, sizeof sums);
}

}  // namespace quant
}  // namespace rlx::cpu
#endif
