// The inner loops of gemm.cpp, a table of them per instruction set. Strides are in elements.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu::gemm {

constexpr int kMaxRows = 14;
// Tiles of so few rows span several panels where there are registers for it: one panel has too few sums to keep the
// multipliers busy, and is too slow a stream from memory.
constexpr int kMaxWideRows = 6;
constexpr int kWidePanels[kMaxWideRows + 1] = {0, 4, 2, 2, 2, 2, 2};

// C[rows, cols] (+)= A[rows, k] · B[k, cols]: the whole of C in registers. B is a panel whose rows lie b_k apart and
// are as wide as the tile; when the tile is wider than one panel, the next one begins b_panel further.
struct Tile {
  int64_t k;
  const float* a;
  int64_t a_row, a_k;
  const void* b;
  int64_t b_k, b_panel;
  float* c;
  int64_t c_row, cols;
  bool accumulate;  // start from C instead of 0
};
using TileFn = void (*)(const Tile&);

// Few rows, B row-major and read once from memory, whole rows at a time; C[rows, cols] stays in the cache.
struct Stream {
  int64_t rows, cols, k;
  const float* a;
  int64_t a_row;  // elements of a row are adjacent
  const void* b;
  int64_t b_k;
  float* c;
  int64_t c_row;
};

// Few rows, columns of B contiguous: dot products.
struct Dots {
  int64_t rows, cols, k;
  const float* a;
  int64_t a_row;
  const void* b;
  int64_t b_col;
  float* c;
  int64_t c_row, c_col;
};

// What an epilogue does to a block of sums: `sums` to `c`, which may be the same memory.
struct Finish {
  int64_t rows, cols;
  const float* sums;
  int64_t sums_row;
  Matrix bias, residual;  // moved to the block's first element; null: none
  ops::ActivationKind activation;
  Result c;  // moved as well
};

// By element type of B: 0 f32, 1 f16, 2 bf16.
constexpr int kTypes = 3;

struct TileKernels {
  int rows;   // of a full tile
  int lanes;  // of a vector of floats; a panel of B is two of them wide
  TileFn tile[kTypes][kMaxRows + 1];
  TileFn half_tile[kMaxRows + 1];              // f32 and one vector wide: for the last columns
  TileFn wide_tile[kTypes][kMaxWideRows + 1];  // null: none
  void (*stream[kTypes])(const Stream&);
  void (*dots[kTypes])(const Dots&);

  int panel() const { return 2 * lanes; }
};

struct PackKernels {
  // A panel of A: dst[k][rows] as f32, any strides.
  void (*a)(const Matrix& a, int64_t rows, int64_t k, float* dst);
  // A panel of B: dst[k][panel], zeros after `cols`. As f32, or as it is.
  void (*b_as_f32)(const Matrix& b, int64_t k, int64_t cols, int64_t panel, float* dst);
  void (*b_as_is)(const Matrix& b, int64_t k, int64_t cols, int64_t panel, void* dst);
};

// Of the best instruction set that this machine has.
const TileKernels& tile_kernels();
const PackKernels& pack_kernels();
void finish(const Finish& f);

}  // namespace rlx::cpu::gemm
