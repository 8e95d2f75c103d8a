// The passes of a transform over split complex numbers, vectorised.
#pragma once

#include <cstdint>

#include "backends/cpu/fft/plan.h"

namespace rlx::cpu::fourier {

struct Split {
  float *re, *im;
};
struct ConstSplit {
  const float *re, *im;
};

// How many transforms are done side by side: element i of transform b lies at i * batch + b.
int64_t batch_width();

// A whole transform of `batch` transforms side by side (1, or batch_width()), all passes between `a` and `b`, the first
// from x, which may be a. Returns where the result is: a or b.
Split run_stages(const Plan& plan, ConstSplit x, Split a, Split b, int64_t batch);

// y = x * w, w an array of `n` factors, each for `batch` neighbours; y may be x.
void multiply(ConstSplit x, ConstSplit w, Split y, int64_t n, int64_t batch);

// Rows of `length` floats, `count` of them (at most batch_width()), to columns and back: element c of row r is at
// column(c)[r]. Columns are those of `to`: the first half of a row are real parts, or every other one is.
void rows_to_columns(const float* rows, int64_t length, int64_t count, bool interleaved, Split to);
void columns_to_rows(ConstSplit from, int64_t length, int64_t count, bool interleaved, float scale, float* rows);
// One row.
void split_row(const float* row, int64_t n, Split to);
void store_row(ConstSplit from, int64_t n, bool interleaved, float scale, float* row);

}  // namespace rlx::cpu::fourier
