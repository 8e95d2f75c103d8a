#include "rlx/ops/cumsum.h"

#include <complex>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// T is the type of the sum: double, uint64_t (wraps) or a pair of doubles.
template <class T, class X, class Set>
void scan(const Call& call, bool reverse, const X& x, const Set& set) {
  const auto& attrs = call.attrs<ops::CumsumAttrs>();
  const auto [outer, cols, inner] = split_at(call.input(0).sizes, attrs.axis);
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t first = row / inner * cols * inner + row % inner;
    T sum{};
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t at = first + (reverse ? cols - 1 - c : c) * inner;
      const T before = sum;
      sum += static_cast<T>(x[at]);
      set(at, attrs.exclusive ? before : sum);
    }
  }
}

void run(const Call& call, bool reverse) {
  const DType dtype = call.output(0).dtype;
  if (is_complex(dtype)) {
    auto* y = call.output_as<std::complex<float>>(0);
    scan<std::complex<double>>(call, reverse, call.input_as<std::complex<float>>(0), [&](int64_t i, auto v) {
      y[i] = {static_cast<float>(v.real()), static_cast<float>(v.imag())};
    });
  } else if (is_float(dtype)) {
    const Writer y = call.writer(0);
    scan<double>(call, reverse, call.reader(0), [&](int64_t i, double v) { y.set(i, v); });
  } else {
    const IntWriter y = call.int_writer(0);
    scan<uint64_t>(call, reverse, call.int_reader(0),
                   [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); });
  }
}

}  // namespace

void cumsum(const Call& call) { run(call, call.attrs<ops::CumsumAttrs>().reverse); }
void cumsum_backward(const Call& call) { run(call, !call.attrs<ops::CumsumAttrs>().reverse); }

}  // namespace rlx::reference
