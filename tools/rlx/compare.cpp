#include "compare.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace rlx::cli {

namespace {

double limit_of(DType dtype) {
  if (dtype == DType::F16) return 0x1p-9;
  if (dtype == DType::BF16) return 0x1p-6;
  return is_float(dtype) || is_complex(dtype) ? 1e-4 : 0;
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : INFINITY;
}

// As doubles, two large ones might be equal.
template <class Int>
double distance(Int a, Int b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  return static_cast<double>(a > b ? ua - ub : ub - ua);
}

}  // namespace

Difference compare(const Tensor& actual, const Tensor& expected) {
  Difference diff{.limit = limit_of(expected.dtype())};
  if (actual.type() != expected.type()) {
    diff.max_abs = diff.max_rel = INFINITY;
    return diff;
  }
  double largest = 0;
  const auto take = [&](auto a, auto e) {
    const auto size = std::abs(static_cast<double>(e));
    if (std::isfinite(size)) largest = std::max(largest, size);
    diff.max_abs = std::max(diff.max_abs, distance(a, e));
  };
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (is_complex(expected.dtype())) {
      const std::complex<float> a = actual.values<std::complex<float>>()[at];
      const std::complex<float> e = expected.values<std::complex<float>>()[at];
      take(double{a.real()}, double{e.real()});
      take(double{a.imag()}, double{e.imag()});
    } else if (expected.dtype() == DType::I64) {
      take(actual.values<int64_t>()[at], expected.values<int64_t>()[at]);
    } else if (expected.dtype() == DType::U64) {
      take(actual.values<uint64_t>()[at], expected.values<uint64_t>()[at]);
    } else {
      take(actual.at(i), expected.at(i));
    }
  }
  diff.max_rel = diff.max_abs == 0 ? 0 : diff.max_abs / largest;  // all expected values 0: infinite
  return diff;
}

}  // namespace rlx::cli
