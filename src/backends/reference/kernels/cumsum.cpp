#include "rlx/ops/cumsum.h"

#include <complex>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

// T is the type of the sum: double, uint64_t (wraps) or a pair of doubles. It begins with `start`.
template <class T, class X, class Set, class F>
void scan(const Call& call, bool reverse, const X& x, const Set& set, T start, const F& f) {
  const auto& attrs = call.attrs<ops::CumsumAttrs>();
  const auto [outer, cols, inner] = split_at(call.input(0).sizes, attrs.axis);
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t first = row / inner * cols * inner + row % inner;
    T value = start;
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t at = first + (reverse ? cols - 1 - c : c) * inner;
      const T before = value;
      value = f(value, static_cast<T>(x[at]));
      set(at, attrs.exclusive ? before : value);
    }
  }
}

// f of two doubles, two uint64_t or two complex numbers; start is its identity.
template <class F>
void run(const Call& call, bool reverse, int start, const F& f) {
  using Complex = std::complex<double>;
  const DType dtype = call.output(0).dtype;
  if (is_complex(dtype)) {
    auto* y = call.output_as<std::complex<float>>(0);
    const auto set = [&](int64_t i, Complex v) { y[i] = {static_cast<float>(v.real()), static_cast<float>(v.imag())}; };
    scan<Complex>(call, reverse, call.input_as<std::complex<float>>(0), set, Complex(start), f);
  } else if (is_float(dtype)) {
    const Writer y = call.writer(0);
    scan<double>(
        call, reverse, call.reader(0), [&](int64_t i, double v) { y.set(i, v); }, start, f);
  } else {
    const IntWriter y = call.int_writer(0);
    const auto set = [&](int64_t i, uint64_t v) { y.set(i, static_cast<int64_t>(v)); };
    scan<uint64_t>(call, reverse, call.int_reader(0), set, static_cast<uint64_t>(start), f);
  }
}

constexpr auto kAdd = [](auto a, auto b) { return a + b; };

// The plain formula for complex numbers: std::complex's operator takes the detours of C99 Annex G around infinities.
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  std::complex<double> operator()(std::complex<double> a, std::complex<double> b) const {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

}  // namespace

void cumsum(const Call& call) { run(call, call.attrs<ops::CumsumAttrs>().reverse, 0, kAdd); }
void cumsum_backward(const Call& call) { run(call, !call.attrs<ops::CumsumAttrs>().reverse, 0, kAdd); }
void cumprod(const Call& call) { run(call, call.attrs<ops::CumsumAttrs>().reverse, 1, Multiply{}); }

}  // namespace rlx::reference
