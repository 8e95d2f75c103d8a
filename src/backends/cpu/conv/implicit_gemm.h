// Convolution as a product of weights [rows, k] and patches [k, windows], k = (channel, tap), whose panels are made
// when they are needed. Every result is one chain of f32 multiply-adds in ascending k: it depends on no blocking.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/epilogue.h"
#include "backends/cpu/conv/window_axes.h"
#include "rlx/dtype.h"

namespace rlx {
class ThreadPool;
}

namespace rlx::cpu {

struct ImplicitGemm {
  WindowAxes axes;
  int64_t images = 0, groups = 1;
  int64_t channels = 0, rows = 0;  // per group: of x, of y
  const float* x = nullptr;        // [images, groups, channels, in...]
  const float* weights = nullptr;  // packed, a group after the other
  std::byte* y = nullptr;          // [images, groups, rows, plane]
  DType dtype = DType::F32;        // of y
  // Where in its plane a window's result lies: y_first + (window . y_step).
  int64_t y_plane = 0, y_first = 0;
  std::array<int64_t, 3> y_step = {};
  ConvEpilogue epilogue;  // a residual only where results of neighbouring windows are neighbours

  int64_t k() const { return channels * taps_of(axes); }
};

// Weights of one group: panels of as many rows as a register tile, each [k][rows]. `at(row, k)` is the element.
int64_t packed_weights_size(int64_t rows, int64_t k);  // in floats
int weight_panels(int64_t rows);
int64_t weight_panel_row(int64_t rows, int64_t panel);  // where a panel begins
template <class F>
void pack_weights(int64_t rows, int64_t k, const F& at, float* packed) {
  const int panels = weight_panels(rows);
  for (int p = 0; p < panels; ++p) {
    const int64_t begin = weight_panel_row(rows, p), end = weight_panel_row(rows, p + 1);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t r = begin; r < end; ++r) packed[begin * k + i * (end - begin) + r - begin] = at(r, i);
  }
}

// Bytes for all threads; pointers are not looked at.
int64_t implicit_gemm_scratch(const ImplicitGemm& g, int threads);
void run_implicit_gemm(const ImplicitGemm& g, ThreadPool& pool, std::byte* scratch);

}  // namespace rlx::cpu
