// Exact products of bytes: loops of matmul_integer and conv_integer. Rows are signed codes and columns unsigned ones,
// as the machine multiplies them: where they are the other kind, they have been moved by 128, and so have their zeros.
#pragma once

#include <cstdint>

#include "backends/cpu/conv/window_axes.h"
#include "backends/cpu/quant/packed.h"

namespace rlx::cpu::quant {

// Bytes of K elements in whole groups of 4.
inline int64_t in_fours(int64_t k) { return (k + 3) / 4 * 4; }

// Columns lie as 4 elements of K by 16 columns at a time, in_fours(k) * 16 bytes.
struct IntegerColumns {
  const uint8_t* codes;
  const int32_t *zeros, *sums;  // of the 16 columns
  int64_t count;                // that are there
};
// Rows lie `step` bytes apart, zeros behind their k-th element.
struct IntegerRows {
  const int8_t* codes;
  int64_t step, count;
  const int32_t *zeros, *terms;  // terms: the row's sum less k times its zero
};
// y[r * y_row + c] = the sum over k of (row r - its zero) * (column c - its zero), in its last 32 bits.
void integer_products(const IntegerRows& rows, const IntegerColumns& columns, int64_t k, int32_t* y, int64_t y_row);

// A row of bytes as signed codes, filled up with zeros; its sum. `flip` is 128 where the bytes are unsigned.
int32_t copy_row(const uint8_t* from, int64_t k, uint8_t flip, int8_t* to);
int32_t sum_row(const int8_t* row, int64_t k);
// Columns of a matrix as unsigned codes: element (i, c) is from[i * k_stride + c]. `flip` is 128 where they are signed.
void pack_columns(const uint8_t* from, int64_t k, int64_t k_stride, int64_t count, uint8_t flip, uint8_t* codes,
                  int32_t* sums);

constexpr int64_t kWindows = 2 * kColumns;  // of a convolution that become columns together

// The windows over the channels of one image and group.
struct ByteWindows {
  WindowAxes axes;
  const uint8_t* all;  // x
  int64_t elements;    // of x: reads may go beyond a row, but not beyond this
  int64_t first;       // where the channels begin in it
  int64_t channels;
  uint8_t padding;  // a byte of x that stands for 0
  uint8_t flip;     // 128 where bytes are signed

  int64_t depth() const { return channels * taps_of(axes); }
};
// Windows [window, window + n) as two groups of columns, one after the other, and the sums of all.
void gather_windows(const ByteWindows& w, int64_t window, int64_t n, uint8_t* codes, int32_t* sums);

}  // namespace rlx::cpu::quant
