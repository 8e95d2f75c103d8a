#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/finish.cpp"
#include "backends/cpu/simd_targets.h"
//
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/gemm/activate.h"
#include "backends/cpu/gemm/kernels.h"
#include "core/convert.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// y[0, n) += x[0, n), x of any dtype and stride.
void add_row(const Matrix& x, int64_t row, int64_t n, float* y) {
  const int64_t first = row * x.row_stride, step = x.col_stride;
  if (x.dtype == DType::F32) {
    const float* p = static_cast<const float*>(x.data) + first;
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) y[i] += p[i];
    else
      for (int64_t i = 0; i < n; ++i) y[i] += p[i * step];
    return;
  }
  const uint16_t* p = static_cast<const uint16_t*>(x.data) + first;
  int64_t i = 0;
  if (step == 1 && x.dtype == DType::BF16) {
    for (; i < n; ++i) y[i] += hwy::F32FromBF16({p[i]});
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (step == 1) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const hn::Rebind<hwy::float16_t, D> dh;
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(
          hn::Add(hn::LoadU(d, y + i), hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p + i)))),
          d, y + i);
  }
#endif
  const auto load = x.dtype == DType::F16 ? f16_to_double : bf16_to_double;
  for (; i < n; ++i) y[i] += static_cast<float>(load(p[i * step]));
}

// To nearest, ties to even; a NaN keeps its upper bits and stays a NaN.
HWY_INLINE uint16_t bf16_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40 : rounded);
}

void store_row(const float* y, int64_t n, const Result& c, int64_t row) {
  const int64_t first = row * c.row_stride, step = c.col_stride;
  if (c.dtype == DType::F32) {
    float* p = static_cast<float*>(c.data) + first;
    if (step != 1)
      for (int64_t i = 0; i < n; ++i) p[i * step] = y[i];
    else if (p != y)
      std::copy(y, y + n, p);
    return;
  }
  uint16_t* p = static_cast<uint16_t*>(c.data) + first;
  if (c.dtype == DType::BF16) {
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) p[i] = bf16_bits(y[i]);
    else
      for (int64_t i = 0; i < n; ++i) p[i * step] = bf16_bits(y[i]);
    return;
  }
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (step == 1) {
    const D d;
    const hn::Rebind<hwy::float16_t, D> dh;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, y + i)), dh, reinterpret_cast<hwy::float16_t*>(p + i));
  }
#endif
  for (; i < n; ++i) p[i * step] = f16_from_double(y[i]);
}

void finish_block(const Finish& f) {
  constexpr int64_t kChunk = 256;
  alignas(64) float chunk[kChunk];
  const bool in_place = f.c.dtype == DType::F32 && f.c.col_stride == 1;
  for (int64_t row = 0; row < f.rows; ++row)
    for (int64_t col = 0; col < f.cols; col += kChunk) {
      const int64_t n = std::min(kChunk, f.cols - col);
      const auto at = [&](auto m) {
        if (m.data) {
          using Byte =
              std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(m.data)>>, const std::byte, std::byte>;
          m.data = static_cast<Byte*>(m.data) + col * m.col_stride * static_cast<int64_t>(size_of(m.dtype));
        }
        return m;
      };
      const Result c = at(f.c);
      float* y = in_place ? static_cast<float*>(c.data) + row * c.row_stride : chunk;
      const float* sums = f.sums + row * f.sums_row + col;
      if (y != sums) std::copy(sums, sums + n, y);
      if (f.bias.data) add_row(at(f.bias), row, n, y);
      if (f.activation != ops::ActivationKind::kNone) activate(f.activation, y, n);
      if (f.residual.data) add_row(at(f.residual), row, n, y);
      store_row(y, n, c, row);
    }
}

}  // namespace rlx::cpu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu::gemm {
HWY_EXPORT(finish_block);
void finish(const Finish& f) { HWY_DYNAMIC_DISPATCH(finish_block)(f); }
}  // namespace rlx::cpu::gemm
#endif
