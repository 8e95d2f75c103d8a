// How a product is carried out: a pure function of sizes, strides, dtypes and the number of threads.
#pragma once

#include "backends/cpu/gemm/kernels.h"

namespace rlx::cpu::gemm {

enum class Way {
  kTiles,   // register tiles over panels
  kStream,  // few rows, B row-major
  kDots,    // few rows, columns of B contiguous
};

struct Plan {
  Way way;
  bool swap;                     // compute Cᵀ = Bᵀ·Aᵀ; the fields below are those of the swapped product
  bool copy_a, copy_b;           // packed first
  int64_t pass_rows, pass_cols;  // so much of A and B is packed at once
  int64_t a_bytes, b_bytes;      // of scratch: packed A, packed B or its last panel
  int64_t sums_bytes;            // of scratch, per thread: sums that cannot be made in C
  int64_t sums_cols;
  int64_t bytes(int threads) const { return a_bytes + b_bytes + sums_bytes * threads; }
};

Plan make_plan(const Gemm& g);
Gemm swapped(const Gemm& g);

// Splits panels of rows and columns into a grid of tasks of about the same size.
struct Grid {
  int64_t rows = 1, cols = 1;
};
Grid make_grid(int64_t row_panels, int64_t col_panels, int64_t max_row_panels, int64_t max_col_panels, int64_t flops,
               int threads);

// Rows of a block of A that stays in the L2 cache, in panels.
constexpr int64_t kBlockPanels = 16;
// Steps of k per pass over C: a panel of A and one of B of this depth stay in the caches.
constexpr int64_t kDepth = 512;

// The i-th of `parts` nearly equal parts of [0, size) begins here.
inline int64_t part_begin(int64_t size, int64_t parts, int64_t i) { return size * i / parts; }

}  // namespace rlx::cpu::gemm
