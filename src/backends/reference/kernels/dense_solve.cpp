#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// Solves a·x = b in place of both by LU with partial pivoting; a is [n, n], b is [n, k]. Returns the column without a
// pivot when there is one, else -1.
int64_t solve(std::span<double> a, std::span<double> b, int64_t n, int64_t k) {
  const auto at = [n](int64_t row, int64_t col) { return static_cast<size_t>(row * n + col); };
  const auto rhs = [k](int64_t row, int64_t col) { return static_cast<size_t>(row * k + col); };
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r)
      if (std::fabs(a[at(r, c)]) > std::fabs(a[at(pivot, c)])) pivot = r;
    if (!(std::fabs(a[at(pivot, c)]) > 0)) return c;
    if (pivot != c) {
      for (int64_t j = 0; j < n; ++j) std::swap(a[at(c, j)], a[at(pivot, j)]);
      for (int64_t j = 0; j < k; ++j) std::swap(b[rhs(c, j)], b[rhs(pivot, j)]);
    }
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[at(r, c)] / a[at(c, c)];
      for (int64_t j = c + 1; j < n; ++j) a[at(r, j)] -= factor * a[at(c, j)];
      for (int64_t j = 0; j < k; ++j) b[rhs(r, j)] -= factor * b[rhs(c, j)];
    }
  }
  for (int64_t r = n - 1; r >= 0; --r)
    for (int64_t j = 0; j < k; ++j) {
      double sum = b[rhs(r, j)];
      for (int64_t c = r + 1; c < n; ++c) sum -= a[at(r, c)] * b[rhs(c, j)];
      b[rhs(r, j)] = sum / a[at(r, r)];
    }
  return -1;
}

// The trace of |a^-1| |a|: close to 1 / epsilon when a is singular up to rounding, and unchanged when rows or columns
// are scaled, which a test of the pivots' size is not.
double condition(std::span<const double> a, std::span<const double> inverse, int64_t n, int64_t stride) {
  double trace = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      trace += std::fabs(inverse[static_cast<size_t>(i * stride + j)]) * std::fabs(a[static_cast<size_t>(j * n + i)]);
  return trace;
}

void solve_slice(const Call& call, int64_t slice, int64_t n, int64_t k) {
  const Reader a = call.reader(0), b = call.reader(1);
  const Writer y = call.writer(0);
  // The unit matrix is a second right-hand side: its solution is the inverse.
  const int64_t stride = n + k;
  const auto size = static_cast<size_t>(n * n);
  const std::span matrix(call.scratch_as<double>(), size), lu(matrix.data() + size, size);
  const std::span x(lu.data() + size, static_cast<size_t>(n * stride));
  for (size_t i = 0; i < size; ++i) matrix[i] = lu[i] = a[slice * n * n + static_cast<int64_t>(i)];
  std::fill(x.begin(), x.end(), 0.0);
  for (int64_t i = 0; i < n; ++i) {
    x[static_cast<size_t>(i * stride + i)] = 1;
    for (int64_t j = 0; j < k; ++j) x[static_cast<size_t>(i * stride + n + j)] = b[(slice * n + i) * k + j];
  }
  if (const int64_t column = solve(lu, x, n, stride); column >= 0)
    fail(ErrorKind::kRuntime, str("Matrix ", slice, " is singular: column (", column, ") of ", n, " has no pivot."));
  // With fewer than two digits left the result would be noise.
  constexpr double kLargest = 0.01 / std::numeric_limits<double>::epsilon();
  if (const double c = condition(matrix, x, n, stride); !(c <= kLargest))
    fail(ErrorKind::kRuntime,
         str("Matrix ", slice, " is singular up to rounding: its condition (", c, ") is more than ", kLargest, "."));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) y.set((slice * n + i) * k + j, x[static_cast<size_t>(i * stride + n + j)]);
}

}  // namespace

// A matrix, its factors, and the right-hand sides.
int64_t dense_solve_scratch(const host::Signature& s, int) {
  const TensorType &a = s.input(0), &b = s.input(1);
  const int64_t n = a.dim(a.rank() - 1).value(), k = b.rank() < a.rank() ? 1 : b.dim(b.rank() - 1).value();
  return (2 * n * n + n * (n + k)) * static_cast<int64_t>(sizeof(double));
}

void dense_solve(const Call& call) {
  const View& b = call.input(1);
  solve_slice(call, 0, b.dim(0), b.rank() == 2 ? b.dim(1) : 1);
}

void batched_dense_solve(const Call& call) {
  const View& b = call.input(1);
  for (int64_t slice = 0; slice < b.dim(0); ++slice) solve_slice(call, slice, b.dim(1), b.rank() == 3 ? b.dim(2) : 1);
}

}  // namespace rlx::reference
