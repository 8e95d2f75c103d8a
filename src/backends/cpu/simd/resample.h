// Weighted sums of elements (resize), vectorised.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// y[i] = sum over k of weight[k * n + i] * x[index[k * n + i]], i < n.
void resample_columns(const float* x, const int32_t* index, const float* weight, int64_t taps, int64_t n, float* y);
// y[i] = sum over k of weight[k] * rows[k][i], i < n.
void resample_rows(const float* const* rows, const float* weight, int64_t taps, int64_t n, float* y);

}  // namespace rlx::cpu
