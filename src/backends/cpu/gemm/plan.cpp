#include "backends/cpu/gemm/plan.h"
#include "backends/cpu/round_up.h"

#include <algorithm>
#include <utility>

namespace rlx::cpu::gemm {

namespace {

constexpr int64_t kFew = 8;  // rows of a product that is limited by reading B
// Whole rows of B are read where it comes from memory; from the caches tiles are faster, as they are for more rows.
constexpr int64_t kStreamRows = 4;
constexpr int64_t kLargeB = int64_t{8} << 20;
constexpr int64_t kPackedA = int64_t{4} << 20;  // bytes packed at once: they should still be in the L3 cache when used
constexpr int64_t kPackedB = int64_t{4} << 20;
constexpr int64_t kSumsCols = 512;
constexpr int64_t kF32 = sizeof(float);

// Rows so far apart land in the same few sets of the L1 cache, which cannot hold a tile's worth of them.
bool rows_collide(int64_t row_stride) { return row_stride * kF32 % 4096 == 0; }

bool wants_swap(const Gemm& g) {
  if (g.packed_b) return false;
  if (g.c.col_stride != 1 && g.c.row_stride == 1) return true;
  return g.n <= kFew && g.m > g.n && (g.a.col_stride == 1 || g.n == 1);
}

// Tiles read A and B as they are, given unit strides: packing first costs more than it saves unless the panel is used
// often, or its rows collide. The numbers were measured (docs/performance.md).
bool copies_a(const Gemm& g, int64_t col_panels) {
  if (g.a.dtype != DType::F32) return true;
  if (g.m <= 2) return false;
  if (g.a.col_stride == 1) return col_panels > (g.m > kFew && rows_collide(g.a.row_stride) ? 2 : 32);
  return col_panels > 4;
}

bool copies_b(const Gemm& g, int64_t row_panels) {
  if (g.packed_b) return false;
  if (g.b.col_stride != 1) return true;
  const int64_t bytes = g.k * g.n * static_cast<int64_t>(size_of(g.b.dtype));
  return row_panels > 20 && bytes > 2'500'000;
}

}  // namespace

Gemm swapped(const Gemm& g) {
  const auto turned = [](auto m) {
    std::swap(m.row_stride, m.col_stride);
    return m;
  };
  Gemm t = g;
  std::swap(t.m, t.n);
  t.a = turned(g.b);
  t.b = turned(g.a);
  t.c = turned(g.c);
  t.epilogue.bias = turned(g.epilogue.bias);
  t.epilogue.residual = turned(g.epilogue.residual);
  return t;
}

Plan make_plan(const Gemm& product) {
  const TileKernels& kernels = tile_kernels();
  Plan p = {};
  p.swap = wants_swap(product);
  const Gemm g = p.swap ? swapped(product) : product;
  const int64_t panel = kernels.panel();
  const int64_t row_panels = div_up(g.m, kernels.rows), col_panels = div_up(g.n, panel);
  const bool sums_in_c = g.c.dtype == DType::F32 && g.c.col_stride == 1;
  p.pass_rows = g.m;
  p.pass_cols = g.n;

  const bool streams = g.b.col_stride == 1 && g.n > 1 && g.m <= kStreamRows &&
                       g.k * g.n * static_cast<int64_t>(size_of(g.b.dtype)) > kLargeB;
  const bool dots = g.b.row_stride == 1 && g.m <= kFew && (g.b.col_stride != 1 || g.n == 1);
  if (!g.packed_b && (streams || dots)) {
    p.way = streams ? Way::kStream : Way::kDots;
    p.copy_a = g.a.dtype != DType::F32 || g.a.col_stride != 1;
    if (p.copy_a) p.a_bytes = round_up(g.m * g.k * kF32, 64);
    p.sums_cols = std::clamp<int64_t>(4096 / g.m / 64 * 64, 64, 1024);  // 16 KiB of sums: half of the L1 cache
    if (!sums_in_c) p.sums_bytes = round_up(g.m * p.sums_cols * kF32, 64);
    return p;
  }

  p.way = Way::kTiles;
  p.copy_a = copies_a(g, col_panels);
  p.copy_b = copies_b(g, row_panels);
  if (p.copy_a) {
    const int64_t block = kBlockPanels * kernels.rows;
    const int64_t rows = kPackedA / (std::max<int64_t>(1, g.k) * kF32) / block * block;
    p.pass_rows = std::min(g.m, std::max(rows, block));
    p.a_bytes = round_up(p.pass_rows * g.k * kF32, 64);
  }
  if (p.copy_b) {
    const int64_t cols = kPackedB / (std::max<int64_t>(1, g.k) * kF32) / panel * panel;
    p.pass_cols = std::min(round_up(g.n, panel), std::max(cols, 4 * panel));
    p.b_bytes = round_up(p.pass_cols * g.k * kF32, 64);
  } else if (!g.packed_b && g.n % panel != 0) {
    p.b_bytes = round_up(panel * g.k * kF32, 64);  // the last panel, filled up with zeros
  }
  p.sums_cols = std::min(kSumsCols, round_up(g.n, panel));
  if (!sums_in_c) p.sums_bytes = round_up(kBlockPanels * kernels.rows * p.sums_cols * kF32, 64);
  return p;
}

Grid make_grid(int64_t row_panels, int64_t col_panels, int64_t max_row_panels, int64_t max_col_panels, int64_t flops,
               int threads) {
  constexpr int64_t kTaskFlops = 200'000;  // a task shorter than a few microseconds is not worth handing over
  const int64_t least_rows = div_up(row_panels, max_row_panels), least_cols = div_up(col_panels, max_col_panels);
  const int64_t wanted = std::clamp<int64_t>(flops / kTaskFlops, 1, threads == 1 ? 1 : 4 * threads);
  Grid best = {least_rows, least_cols};
  if (least_rows * least_cols >= wanted) {
    // The pool hands out four pieces per thread, each a run of tasks: as many tasks in each, else some thread waits.
    while (best.rows * best.cols % wanted != 0 && best.rows < std::min(row_panels, least_rows + wanted)) ++best.rows;
    return best.rows * best.cols % wanted == 0 ? best : Grid{least_rows, least_cols};
  }
  int64_t best_time = INT64_MAX;
  for (int64_t cols = least_cols; cols <= std::min(col_panels, wanted); ++cols)
    for (int64_t rows = least_rows; rows <= std::min(row_panels, std::max<int64_t>(1, wanted / cols)); ++rows) {
      // The longest chain of tasks of one thread, and what all of them load: every block of rows all of B, every block
      // of columns all of A. In tenths of a cycle per step of k; loads are mostly hidden behind products.
      const int64_t chain = div_up(rows * cols, threads);
      const int64_t products = 280 * chain * div_up(row_panels, rows) * div_up(col_panels, cols);
      const int64_t time = products + (24 * rows * col_panels + 10 * cols * row_panels) / threads;
      if (time < best_time) best_time = time, best = {rows, cols};
    }
  return best;
}

}  // namespace rlx::cpu::gemm
