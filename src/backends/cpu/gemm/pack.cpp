#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/pack.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/kernels.h"
#include "core/convert.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float to_f32(float x) { return x; }
HWY_INLINE float to_f32(hwy::float16_t x) { return static_cast<float>(f16_to_double(x.bits)); }
HWY_INLINE float to_f32(hwy::bfloat16_t x) { return static_cast<float>(bf16_to_double(x.bits)); }

#if HWY_TARGET != HWY_SCALAR
using D4 = hn::CappedTag<float, 4>;
HWY_INLINE hn::Vec<D4> load4(const float* p) { return hn::LoadU(D4(), p); }
template <class T>
HWY_INLINE hn::Vec<D4> load4(const T* p) {
  return hn::PromoteTo(D4(), hn::LoadU(hn::Rebind<T, D4>(), p));
}

// Four columns x [0, count) of dst from four lines; `safe`: of so many the fourth column may be written.
template <class T>
HWY_INLINE void transpose_four(const T* const row[4], int64_t lines, int64_t count, int64_t safe, int64_t wide,
                               float* out) {
  const D4 d;
  const hn::RepartitionToWide<D4> d2;
  int64_t x = 0;
  for (; x + 4 <= safe; x += 4) {
    const auto r0 = load4(row[0] + x), r1 = load4(row[1] + x), r2 = load4(row[2] + x), r3 = load4(row[3] + x);
    const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)), d, out + x * wide);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)), d, out + (x + 1) * wide);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)), d, out + (x + 2) * wide);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)), d, out + (x + 3) * wide);
  }
  for (; x < count; ++x)
    for (int64_t i = 0; i < lines; ++i) out[x * wide + i] = to_f32(row[i][x]);
}

// dst[x * wide + y] = src[y * line + x]: lines are contiguous, four of them become four columns at a time. Where fewer
// than four are left the last is read again, and what that writes beyond the row is overwritten afterwards: the
// incomplete columns come first, rows in ascending order, and nothing is written beyond the last row. Done in blocks of
// rows that stay in the L1 cache until all their columns are there.
template <class T>
void transpose(const T* src, int64_t line, int64_t lines, int64_t length, int64_t wide, float* dst) {
  constexpr int64_t kBlock = 64;
  for (int64_t x = 0; x < length; x += kBlock) {
    const int64_t count = std::min(kBlock, length - x);
    for (int64_t y = (lines - 1) / 4 * 4; y >= 0; y -= 4) {
      const T* row[4];
      for (int64_t i = 0; i < 4; ++i) row[i] = src + std::min(y + i, lines - 1) * line + x;
      const bool whole = y + 4 <= wide || x + count < length;
      transpose_four(row, std::min<int64_t>(4, lines - y), count, whole ? count : count - 1, wide, dst + x * wide + y);
    }
  }
}
#endif

// dst[x * wide + y], y < lines
template <class T>
void pack_lines(const T* src, int64_t line, int64_t step, int64_t lines, int64_t length, int64_t wide, float* dst) {
#if HWY_TARGET != HWY_SCALAR
  if (step == 1 && lines > 0) return transpose(src, line, lines, length, wide, dst);
  if (line == 1) {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t x = 0; x < length; ++x, src += step, dst += wide) {
      int64_t y = 0;
      for (; y + lanes <= lines; y += lanes) {
        if constexpr (sizeof(T) == 4)
          hn::StoreU(hn::LoadU(d, src + y), d, dst + y);
        else
          hn::StoreU(hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, decltype(d)>(), src + y)), d, dst + y);
      }
      for (; y < lines; ++y) dst[y] = to_f32(src[y]);
    }
    return;
  }
#endif
  for (int64_t x = 0; x < length; ++x)
    for (int64_t y = 0; y < lines; ++y) dst[x * wide + y] = to_f32(src[y * line + x * step]);
}

void pack_as_f32(const void* src, DType dtype, int64_t line, int64_t step, int64_t lines, int64_t length, int64_t wide,
                 float* dst) {
  if (dtype == DType::F32)
    pack_lines(static_cast<const float*>(src), line, step, lines, length, wide, dst);
  else if (dtype == DType::F16)
    pack_lines(static_cast<const hwy::float16_t*>(src), line, step, lines, length, wide, dst);
  else
    pack_lines(static_cast<const hwy::bfloat16_t*>(src), line, step, lines, length, wide, dst);
}

void pack_a(const Matrix& a, int64_t rows, int64_t k, float* dst) {
  pack_as_f32(a.data, a.dtype, a.row_stride, a.col_stride, rows, k, rows, dst);
}

void pack_b_as_f32(const Matrix& b, int64_t k, int64_t cols, int64_t panel, float* dst) {
  pack_as_f32(b.data, b.dtype, b.col_stride, b.row_stride, cols, k, panel, dst);
  if (cols < panel)
    for (int64_t x = 0; x < k; ++x) std::fill(dst + x * panel + cols, dst + (x + 1) * panel, 0.0f);
}

void pack_b_as_is(const Matrix& b, int64_t k, int64_t cols, int64_t panel, void* dst) {
  if (b.dtype == DType::F32) return pack_b_as_f32(b, k, cols, panel, static_cast<float*>(dst));
  const uint16_t* src = static_cast<const uint16_t*>(b.data);
  uint16_t* out = static_cast<uint16_t*>(dst);
  for (int64_t x = 0; x < k; ++x, src += b.row_stride, out += panel) {
    if (b.col_stride == 1)
      std::memcpy(out, src, static_cast<size_t>(cols) * sizeof(uint16_t));
    else
      for (int64_t y = 0; y < cols; ++y) out[y] = src[y * b.col_stride];
    std::fill(out + cols, out + panel, uint16_t{0});
  }
}

const PackKernels* packing_of_target() {
  static constexpr PackKernels table = {pack_a, pack_b_as_f32, pack_b_as_is};
  return &table;
}

}  // namespace rlx::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu::gemm {
HWY_EXPORT(packing_of_target);
const PackKernels& pack_kernels() { return *HWY_DYNAMIC_DISPATCH(packing_of_target)(); }
}  // namespace rlx::cpu::gemm
#endif
