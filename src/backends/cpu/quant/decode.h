// Weights decoded to f32 in a cache-sized buffer, and products with what was decoded: the way of every scheme, layout
// and machine that the integer-dot kernels (packed.h) do not serve.
#pragma once

#include <cstdint>

#include "rlx/scheme.h"

namespace rlx::cpu::quant {

// A row of k elements of a GGUF scheme; every value is that of decode_blocks, bit for bit.
void decode_row(Scheme scheme, const uint8_t* bytes, int64_t k, float* out);

// y[i * y_stride + j] = dot product of row i of x and row j of w, both of k elements.
void dot_rows(const float* const* x, int64_t x_rows, const float* w, int64_t w_rows, int64_t k, float* const* y);

struct SideWeight {
  Scheme scheme;
  const uint8_t* codes;
  const float* scale;        // per block and column; fp8: per column, or one
  const float* zero;         // int8a
  const uint8_t* scale8;     // nvfp4
  float global;              // nvfp4
  int64_t n, block, scales;  // columns, elements of K per scale, number of fp8 scales
};

// Elements [k, column .. column + count) of a side-tensor weight.
void decode_side(const SideWeight& weight, int64_t k, int64_t column, int64_t count, float* out);

// y[r][0 .. count) = x[r][0 .. k) times the columns of an fp8 weight, scales left out but for the returned factor of
// them all. `y` has room for a multiple of 64 columns. The codes are read row by row, as they lie in memory: for few
// rows of x, at most kFewRows.
inline constexpr int64_t kFewRows = 4;
float multiply_fp8(bool e5m2, const uint8_t* codes, int64_t n, int64_t k, int64_t count, const float* const* x,
                   int64_t x_rows, float* const* y);

// y[i][0 .. width) += x[i][0 .. k) times the rows of w, which are `width` apart; width is a multiple of 16.
void multiply_tile(const float* const* x, int64_t x_rows, const float* w, int64_t k, int64_t width, float* const* y);

}  // namespace rlx::cpu::quant
