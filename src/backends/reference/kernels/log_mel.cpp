#include "rlx/ops/log_mel.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "backends/reference/kernels/kernels.h"

namespace rlx::reference {

namespace {

constexpr double kMinPower = 1e-10;

// Sizes of a call, and the mel powers of all its frames.
struct Mel {
  int64_t frames, n, bins, mels, frames_per_max;
  std::vector<double> power;  // [frames, mels]

  explicit Mel(const Call& call) {
    const View &spectrum = call.input(0), &filters = call.input(1);
    n = spectrum.dim(spectrum.rank() - 1) / 2;
    bins = filters.dim(1);
    mels = filters.dim(0);
    frames = spectrum.elements() / (2 * n);
    const bool clip = call.attrs<ops::LogMelAttrs>().max_over == ops::MaxOver::kClip;
    frames_per_max = clip ? spectrum.dim(spectrum.rank() - 2) : 1;

    const Reader x = call.reader(0), f = call.reader(1);
    power.assign(static_cast<size_t>(frames * mels), 0);
    for (int64_t t = 0; t < frames; ++t)
      for (int64_t m = 0; m < mels; ++m)
        for (int64_t k = 0; k < bins; ++k) {
          const double re = x[t * 2 * n + k], im = x[t * 2 * n + n + k];
          power[static_cast<size_t>(t * mels + m)] += f[m * bins + k] * (re * re + im * im);
        }
  }

  double log_power(int64_t t, int64_t m) const {
    const double p = power[static_cast<size_t>(t * mels + m)];
    return std::log10(p < kMinPower ? kMinPower : p);  // NaN stays NaN
  }

  // The floor of the frames that share a maximum with frame t; NaN wins.
  double floor(int64_t t) const {
    const int64_t first = t / frames_per_max * frames_per_max;
    double top = -INFINITY;
    for (int64_t i = first; i < first + frames_per_max; ++i)
      for (int64_t m = 0; m < mels; ++m) {
        const double l = log_power(i, m);
        if (std::isnan(l)) return l;
        if (l > top) top = l;
      }
    return top - 8;
  }
};

}  // namespace

void log_mel(const Call& call) {
  const Mel mel(call);
  const Writer y = call.writer(0);
  double floor = 0;
  for (int64_t t = 0; t < mel.frames; ++t) {
    if (t % mel.frames_per_max == 0) floor = mel.floor(t);
    for (int64_t m = 0; m < mel.mels; ++m) {
      const double l = mel.log_power(t, m);
      y.set(t * mel.mels + m, ((l >= floor ? l : floor) + 4) / 4);  // a NaN in the frame is the floor
    }
  }
}

void log_mel_backward(const Call& call) {
  const Mel mel(call);
  const Reader x = call.reader(0), f = call.reader(1), dy = call.reader(2);
  const Writer dx = call.writer(0);
  double floor = 0;
  std::vector<double> d_bin(static_cast<size_t>(mel.bins));
  for (int64_t t = 0; t < mel.frames; ++t) {
    if (t % mel.frames_per_max == 0) floor = mel.floor(t);
    d_bin.assign(d_bin.size(), 0);
    for (int64_t m = 0; m < mel.mels; ++m) {
      const double p = mel.power[static_cast<size_t>(t * mel.mels + m)];
      if (p <= kMinPower || mel.log_power(t, m) <= floor + 1e-6) continue;  // the value does not depend on the power
      const double d = dy[t * mel.mels + m] * 0.25 / (p * std::numbers::ln10);
      for (int64_t k = 0; k < mel.bins; ++k) d_bin[static_cast<size_t>(k)] += d * f[m * mel.bins + k];
    }
    for (int64_t k = 0; k < mel.n; ++k) {
      const double d = k < mel.bins ? 2 * d_bin[static_cast<size_t>(k)] : 0;
      const int64_t re = t * 2 * mel.n + k, im = re + mel.n;
      dx.set(re, d * x[re]);
      dx.set(im, d * x[im]);
    }
  }
}

}  // namespace rlx::reference
