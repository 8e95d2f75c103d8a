#include <complex>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

using C = std::complex<float>;

void complex_norm_sq(const Call& call) {
  const C* z = call.input_as<C>(0);
  const Writer y = call.writer(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) {
    const double re = z[i].real(), im = z[i].imag();
    y.set(i, re * re + im * im);
  }
}

void conjugate(const Call& call) {
  const C* z = call.input_as<C>(0);
  C* y = call.output_as<C>(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) y[i] = {z[i].real(), -z[i].imag()};
}

void complex_norm_sq_backward(const Call& call) {
  const C* z = call.input_as<C>(0);
  const float* g = call.input_as<float>(1);
  C* dz = call.output_as<C>(0);
  const int64_t n = call.output(0).elements();
  for (int64_t i = 0; i < n; ++i) dz[i] = {g[i] * z[i].real(), g[i] * z[i].imag()};
}

}  // namespace rlx::reference
