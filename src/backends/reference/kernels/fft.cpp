#include "rlx/ops/fft.h"

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

using Complex = std::complex<double>;
using Row = std::vector<Complex>;

// The plain product; std::complex's own one takes detours around infinities.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// e^(sign * 2 pi i * numerator / denominator), numerator in [0, denominator).
Complex unit(int64_t numerator, int64_t denominator, double sign) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), sign * std::sin(angle)};
}

// Sum over n of x[n] * e^(sign * 2 pi i * nk / N) for a length N that is a power of two.
class PowerOfTwo {
 public:
  PowerOfTwo(size_t n, double sign) : n_(n) {
    for (size_t k = 0; k < n / 2; ++k)
      twiddles_.push_back(unit(static_cast<int64_t>(k), static_cast<int64_t>(n), sign));
  }

  void run(Row& x) const {
    for (size_t i = 1, j = 0; i < n_; ++i) {  // bit reversal: j counts with its carry running to the right
      size_t bit = n_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j |= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (size_t half = 1; half < n_; half *= 2)
      for (size_t first = 0; first < n_; first += 2 * half)
        for (size_t k = 0; k < half; ++k) {
          const Complex even = x[first + k], odd = times(x[first + k + half], twiddles_[k * (n_ / (2 * half))]);
          x[first + k] = even + odd;
          x[first + k + half] = even - odd;
        }
  }

 private:
  size_t n_;
  Row twiddles_;
};

// Any length as a convolution with a chirp (Bluestein): nk = (n^2 + k^2 - (k-n)^2) / 2.
class AnyLength {
 public:
  AnyLength(size_t n, double sign)
      : n_(n), padded_(std::bit_ceil(2 * n - 1)), forward_(padded_, -1), backward_(padded_, 1), kernel_(padded_) {
    const auto size = static_cast<int64_t>(n);
    int64_t square = 0;  // k^2 mod 2N, exact for every N
    for (int64_t k = 0; k < size; ++k) {
      chirp_.push_back(unit(square, 2 * size, sign));
      square = (square + 2 * k + 1) % (2 * size);
    }
    for (size_t k = 0; k < n; ++k) {
      kernel_[k] = std::conj(chirp_[k]);
      if (k > 0) kernel_[padded_ - k] = kernel_[k];
    }
    forward_.run(kernel_);
  }

  void run(Row& x) const {
    Row work(padded_);
    for (size_t k = 0; k < n_; ++k) work[k] = times(x[k], chirp_[k]);
    forward_.run(work);
    for (size_t k = 0; k < padded_; ++k) work[k] = times(work[k], kernel_[k]);
    backward_.run(work);
    for (size_t k = 0; k < n_; ++k) x[k] = times(work[k], chirp_[k]) / static_cast<double>(padded_);
  }

 private:
  size_t n_, padded_;
  PowerOfTwo forward_, backward_;
  Row kernel_, chirp_;
};

double scale_of(const ops::FftAttrs& attrs, int64_t n) {
  const auto size = static_cast<double>(n);
  switch (attrs.norm) {
    case ops::FftNorm::kBackward: return 1;
    case ops::FftNorm::kForward: return attrs.inverse ? 1 / size : 1;
    case ops::FftNorm::kOrtho: return 1 / std::sqrt(size);
    case ops::FftNorm::kForwardScaled: return attrs.inverse ? 1 : 1 / size;
  }
  fail(ErrorKind::kInternal, "Unknown FFT norm.");
}

template <class Plan>
void transform(const Call& call, int64_t n, const Plan& plan) {
  const View& view = call.input(0);
  const bool interleaved = is_complex(view.dtype);
  const int64_t rows = view.elements() / view.dim(view.rank() - 1);
  const double scale = scale_of(call.attrs<ops::FftAttrs>(), n);
  Row row(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; ++r) {
    if (interleaved) {
      const auto* x = call.input_as<std::complex<float>>(0) + r * n;
      for (size_t i = 0; i < row.size(); ++i) row[i] = Complex(x[i]);
    } else {
      const Reader x = call.reader(0);
      for (int64_t i = 0; i < n; ++i) row[static_cast<size_t>(i)] = {x[r * 2 * n + i], x[r * 2 * n + n + i]};
    }
    plan.run(row);
    if (interleaved) {
      auto* y = call.output_as<std::complex<float>>(0) + r * n;
      for (size_t i = 0; i < row.size(); ++i) y[i] = std::complex<float>(row[i] * scale);
    } else {
      const Writer y = call.writer(0);
      for (int64_t i = 0; i < n; ++i) {
        y.set(r * 2 * n + i, row[static_cast<size_t>(i)].real() * scale);
        y.set(r * 2 * n + n + i, row[static_cast<size_t>(i)].imag() * scale);
      }
    }
  }
}

}  // namespace

void fft(const Call& call) {
  const View& x = call.input(0);
  const int64_t n = x.dim(x.rank() - 1) / (is_complex(x.dtype) ? 1 : 2);
  const double sign = call.attrs<ops::FftAttrs>().inverse ? 1 : -1;
  if (std::has_single_bit(static_cast<uint64_t>(n)))
    transform(call, n, PowerOfTwo(static_cast<size_t>(n), sign));
  else
    transform(call, n, AnyLength(static_cast<size_t>(n), sign));
}

}  // namespace rlx::reference
