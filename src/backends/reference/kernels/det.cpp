#include <cmath>
#include <span>
#include <utility>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

// The product of the pivots of LU with partial pivoting, in place; every exchange of rows turns the sign.
static double determinant(std::span<double> a, int64_t n) {
  const auto at = [n](int64_t row, int64_t col) { return static_cast<size_t>(row * n + col); };
  double result = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r)
      if (std::fabs(a[at(r, c)]) > std::fabs(a[at(pivot, c)])) pivot = r;
    result *= a[at(pivot, c)];
    if (a[at(pivot, c)] == 0) return 0;
    if (pivot != c) {
      result = -result;
      for (int64_t j = 0; j < n; ++j) std::swap(a[at(c, j)], a[at(pivot, j)]);
    }
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[at(r, c)] / a[at(c, c)];
      for (int64_t j = c + 1; j < n; ++j) a[at(r, j)] -= factor * a[at(c, j)];
    }
  }
  return result;
}

int64_t det_scratch(const host::Signature& s, int) {
  const int64_t n = s.input(0).dim(s.input(0).rank() - 1).value();
  return n * n * static_cast<int64_t>(sizeof(double));
}

void det(const Call& call) {
  const int64_t n = call.input(0).sizes.back();
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  const std::span matrix(call.scratch_as<double>(), static_cast<size_t>(n * n));
  for (int64_t i = 0; i < call.output(0).elements(); ++i) {
    for (int64_t k = 0; k < n * n; ++k) matrix[static_cast<size_t>(k)] = x[i * n * n + k];
    y.set(i, determinant(matrix, n));
  }
}

}  // namespace rlx::reference
