// Softmax of rows and of columns of f32, vectorised. A NaN reaches the sum of its row, and so all of it.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// Rows that follow each other. The exponentials stand in `e` between the passes; e may be x or y, and so may y be x.
// `stream` writes y past the caches; a stream_flush follows.
void softmax_rows(const float* x, float* e, float* y, int64_t rows, int64_t cols, bool stream);

// The same of F16 or BF16; `e` holds one row, y may be x or, for a single row, e. To stream, y's rows begin with a
// cache line.
void softmax_half_rows(bool bf16, const uint16_t* x, float* e, uint16_t* y, int64_t rows, int64_t cols, bool stream);

// `width` columns side by side, `cols` elements each, in place.
inline constexpr int64_t kSoftmaxStrip = 256;  // width at most
void softmax_columns(float* v, int64_t cols, int64_t width);

// The largest element, and the sum of exp(x - largest). What follows x is fetched on the way: the next row.
struct ExpSum {
  float top;
  double sum;
};
ExpSum exp_sum_of_row(const float* x, int64_t n);

// y = exp(x - top) * scale
void scaled_exp_row(const float* x, float* y, int64_t n, float top, float scale);

}  // namespace rlx::cpu
