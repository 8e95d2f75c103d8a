// Loops of quantize, dequantize, q_matmul and q_conv2d.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/quant/packed.h"

namespace rlx::cpu::quant {

// Scale and zero point of consecutive elements: steps of 0 (the same for all) or 1.
struct Steps {
  const float* scale;
  int64_t scale_step;
  const int64_t* zero;
  int64_t zero_step;
};
void quantize_run(const float* x, int64_t n, const Steps& steps, int8_t* q);
void dequantize_run(const int8_t* q, int64_t n, const Steps& steps, float* y);

// An int8 matrix in groups of 16 columns, as bytes plus 128: the sums of the columns, then 4 elements of K by 16
// columns at a time.
inline int64_t int8_group_bytes(int64_t k) { return kColumns * 8 + (k + 3) / 4 * 64; }
// Element (i, column) lies at w[i * k_stride + column * n_stride].
void pack_int8_group(const int8_t* w, int64_t k, int64_t columns, int64_t k_stride, int64_t n_stride, uint8_t* out);

struct Int8Product {
  int64_t x_zp, w_zp, out_zp;
  float mult;
};
// The codes of one group's columns for rows of k bytes each: y[r * 16 + c].
void int8_group(const Int8Product& product, const uint8_t* group, const int32_t* bias, int64_t columns, int64_t k,
                std::span<const int8_t* const> rows, const int64_t* row_sums, int8_t* y);
int64_t int8_sum(const int8_t* x, int64_t n);

}  // namespace rlx::cpu::quant
