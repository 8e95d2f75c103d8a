// Scans and searches of f32, vectorised.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// One step of running sums side by side: sums += x; y = the sums before or after. `ahead`, a row that is read soon, is
// fetched.
void scan_step(const float* x, float* y, double* sums, int64_t width, bool exclusive, const float* ahead);

// The first of the largest (or smallest) elements; a NaN is larger and smaller than everything.
int64_t arg_of_row(const float* x, int64_t n, bool largest);

// The same for `width` columns side by side, `rows` elements each, `stride` apart.
inline constexpr int64_t kArgStrip = 256;  // width at most
void arg_of_columns(const float* x, int64_t rows, int64_t stride, int64_t width, bool largest, int32_t* index);

// Floats as integers in the same order, largest NaN: -0 is 0. `largest` false turns the order around.
void ordered_keys(const float* x, int32_t* keys, int64_t n, bool largest);

// The indices, from `first` on, of up to `capacity` keys above `threshold`; `next` is where the search ended.
int64_t find_above(const int32_t* keys, int64_t first, int64_t n, int32_t threshold, int32_t* found, int64_t capacity,
                   int64_t& next);

}  // namespace rlx::cpu
