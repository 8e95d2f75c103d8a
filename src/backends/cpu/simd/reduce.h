// Reductions of rows and of columns, vectorised. Sums and products of floats are taken in double, as the oracle takes
// them: the conversion costs less than the memory, and no order of summation is too coarse. Integers wrap at 64 bits.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace rlx::cpu {

enum class Step { kSum, kProd, kMax, kMin };  // a NaN anywhere makes the largest and the smallest NaN

// What a reduction of nothing gives; Acc is double or int64_t.
template <class Acc>
constexpr Acc identity(Step step) {
  using Limits = std::numeric_limits<Acc>;
  constexpr bool kFloat = std::is_floating_point_v<Acc>;
  switch (step) {
    case Step::kSum: return 0;
    case Step::kProd: return 1;
    case Step::kMax: return kFloat ? -Limits::infinity() : Limits::min();
    case Step::kMin: return kFloat ? Limits::infinity() : Limits::max();
  }
  return 0;
}

inline double combine(Step step, double a, double b) {
  switch (step) {
    case Step::kSum: return a + b;
    case Step::kProd: return a * b;
    case Step::kMax: return a != a || a >= b ? a : b;
    case Step::kMin: return a != a || a <= b ? a : b;
  }
  return a;
}
inline int64_t combine(Step step, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (step) {
    case Step::kSum: return static_cast<int64_t>(ua + ub);
    case Step::kProd: return static_cast<int64_t>(ua * ub);
    case Step::kMax: return a > b ? a : b;
    case Step::kMin: return a < b ? a : b;
  }
  return a;
}

// acc[r] = step(acc[r], the elements of row r); rows of `cols` elements follow each other.
void reduce_rows(Step step, const float* x, int64_t rows, int64_t cols, double* acc);
void reduce_rows(Step step, const int32_t* x, int64_t rows, int64_t cols, int64_t* acc);
void reduce_rows(Step step, const int64_t* x, int64_t rows, int64_t cols, int64_t* acc);

// acc[i] = step(acc[i], x[i], x[i + stride], ...) for `width` columns of `rows` elements.
void reduce_columns(Step step, const float* x, int64_t rows, int64_t stride, int64_t width, double* acc);
void reduce_columns(Step step, const int32_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc);
void reduce_columns(Step step, const int64_t* x, int64_t rows, int64_t stride, int64_t width, int64_t* acc);

}  // namespace rlx::cpu
