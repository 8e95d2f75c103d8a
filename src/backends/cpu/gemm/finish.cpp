#include <algorithm>
#include <array>

#include "backends/cpu/elementwise/activation_step.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/simd/convert.h"
#include "core/convert.h"

namespace rlx::cpu::gemm {

namespace {

constexpr int64_t kChunk = 256;  // columns at a time; their sums stay in the L1 cache

// n elements of a row as contiguous floats: in place, or copied to the buffer.
const float* row_of(const Matrix& x, int64_t row, int64_t col, int64_t n, float* buffer) {
  const auto* data = static_cast<const std::byte*>(x.data);
  const int64_t first = row * x.row_stride + col * x.col_stride;
  if (x.col_stride == 1) return row_as_f32(x.dtype, data, first, buffer, n);
  const LoadFn load = load_fn(x.dtype);
  if (x.col_stride == 0)
    std::fill(buffer, buffer + n, static_cast<float>(load(data, first)));
  else
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(load(data, first + i * x.col_stride));
  return buffer;
}

void store_row(const float* y, const Result& c, int64_t row, int64_t col, int64_t n) {
  auto* data = static_cast<std::byte*>(c.data);
  const int64_t first = row * c.row_stride + col * c.col_stride;
  if (c.col_stride == 1) return from_f32(c.dtype, y, data, first, n);
  const StoreFn store = store_fn(c.dtype);
  for (int64_t i = 0; i < n; ++i) store(data, first + i * c.col_stride, static_cast<double>(y[i]));
}

}  // namespace

void finish(const Finish& f) {
  const StepFn add = step_fn(Micro::kAddF), activate = activation_step(f.activation);
  alignas(64) float chunk[kChunk], operand[kChunk];
  const bool in_place = f.c.dtype == DType::F32 && f.c.col_stride == 1;
  for (int64_t row = 0; row < f.rows; ++row)
    for (int64_t col = 0; col < f.cols; col += kChunk) {
      const int64_t n = std::min(kChunk, f.cols - col);
      const float* sums = f.sums + row * f.sums_row + col;
      float* y = in_place ? static_cast<float*>(f.c.data) + row * f.c.row_stride + col : chunk;
      const auto add_row = [&](const Matrix& x) {
        const std::array<const void*, 2> operands = {sums, row_of(x, row, col, n, operand)};
        add(operands.data(), y, n);
        sums = y;
      };
      if (f.bias.data) add_row(f.bias);
      if (activate) {
        const void* x = sums;
        activate(&x, y, n);
        sums = y;
      }
      if (f.residual.data) add_row(f.residual);
      if (!in_place)
        store_row(sums, f.c, row, col, n);
      else if (sums != y)
        std::copy(sums, sums + n, y);
    }
}

}  // namespace rlx::cpu::gemm
