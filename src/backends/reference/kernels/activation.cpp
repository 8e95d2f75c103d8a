#include <cmath>
#include <complex>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

template <class F>
void map_float(const Call& call, const F& f) {
  const Reader x = call.reader(0);
  const Writer y = call.writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) y.set(i, f(x[i]));
}

// Integers of up to 64 bits exactly; the writer keeps the low bits of narrower types.
template <class F>
void map_int(const Call& call, const F& f) {
  const IntReader x = call.int_reader(0);
  const IntWriter y = call.int_writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) y.set(i, f(x[i]));
}

template <class F>
void map_complex(const Call& call, const F& f) {
  using C = std::complex<float>;
  const C* z = call.input_as<C>(0);
  C* y = call.output_as<C>(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) {
    const std::complex<double> v = f(std::complex<double>(z[i]));
    y[i] = C(static_cast<float>(v.real()), static_cast<float>(v.imag()));
  }
}

bool complex_call(const Call& call) { return is_complex(call.output(0).dtype); }
bool int_call(const Call& call) { return is_int(call.output(0).dtype); }
int64_t wrapping_neg(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }

}  // namespace

void relu(const Call& call) {
  if (int_call(call)) return map_int(call, [](int64_t x) { return x < 0 ? 0 : x; });
  map_float(call, [](double x) { return x < 0 ? 0 : x; });  // NaN is not < 0 and stays
}

void sigmoid(const Call& call) {
  map_float(call, [](double x) { return 1 / (1 + std::exp(-x)); });
}

void tanh(const Call& call) {
  map_float(call, [](double x) { return std::tanh(x); });
}

void exp(const Call& call) {
  if (complex_call(call))
    return map_complex(call, [](std::complex<double> z) {
      const double r = std::exp(z.real());
      return std::complex<double>(r * std::cos(z.imag()), r * std::sin(z.imag()));
    });
  map_float(call, [](double x) { return std::exp(x); });
}

void log(const Call& call) {
  if (complex_call(call))
    return map_complex(call, [](std::complex<double> z) {
      return std::complex<double>(std::log(std::hypot(z.real(), z.imag())), std::atan2(z.imag(), z.real()));
    });
  map_float(call, [](double x) { return std::log(x); });
}

void sqrt(const Call& call) {
  // On the negative real axis the root is on the positive imaginary one, whatever the sign of the zero.
  if (complex_call(call))
    return map_complex(call, [](std::complex<double> z) {
      return std::sqrt(std::complex<double>(z.real(), z.imag() == 0 ? 0.0 : z.imag()));
    });
  map_float(call, [](double x) { return std::sqrt(x); });
}

void rsqrt(const Call& call) {
  map_float(call, [](double x) { return 1 / std::sqrt(x); });
}

void neg(const Call& call) {
  if (complex_call(call)) return map_complex(call, [](std::complex<double> z) { return -z; });
  if (int_call(call)) return map_int(call, wrapping_neg);
  map_float(call, [](double x) { return -x; });
}

void abs(const Call& call) {
  if (int_call(call)) return map_int(call, [](int64_t x) { return x < 0 ? wrapping_neg(x) : x; });
  map_float(call, [](double x) { return std::fabs(x); });
}

// 1 + erf(t) = erfc(-t), which does not cancel for large negative x.
void gelu(const Call& call) {
  map_float(call, [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); });
}

void silu(const Call& call) {
  map_float(call, [](double x) { return x / (1 + std::exp(-x)); });
}

// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), which does not cancel for large negative x.
void gelu_approx(const Call& call) {
  map_float(call, [](double x) {
    const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-2 * u));
  });
}

void round(const Call& call) {
  map_float(call, [](double x) { return std::nearbyint(x); });  // ties to even
}

void sin(const Call& call) {
  map_float(call, [](double x) { return std::sin(x); });
}

void cos(const Call& call) {
  map_float(call, [](double x) { return std::cos(x); });
}

void tan(const Call& call) {
  map_float(call, [](double x) { return std::tan(x); });
}

void atan(const Call& call) {
  map_float(call, [](double x) { return std::atan(x); });
}

}  // namespace rlx::reference
