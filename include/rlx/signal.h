// Builders of signal processing on top of ops::fft, with the names and conventions of NumPy, SciPy and PyTorch: nothing
// is padded behind the caller's back (spec 10, 4.14, Q33, Q34).
#pragma once

#include <optional>
#include <vector>

#include "rlx/graph.h"

namespace rlx::signal {

// NumPy's names for which transform is divided: the inverse by N, both by sqrt(N), the forward one by N.
enum class Norm { kBackward, kOrtho, kForward };

// Real and imaginary parts of a spectrum, of one shape.
struct Spectrum {
  Value re, im;
};

// The transform along any axis: of C64, or of F32 / F64 with N real parts before N imaginary ones along that axis.
Value fft_axis(const Value& x, int64_t axis, bool inverse = false, Norm norm = Norm::kBackward);

// Along several axes, each once; no axes: x itself. More than one axis needs C64.
Value fftn(const Value& x, std::vector<int64_t> axes, Norm norm = Norm::kBackward);
Value ifftn(const Value& x, std::vector<int64_t> axes, Norm norm = Norm::kBackward);

// Bins 0 … N/2 of real x [..., N], F32 or F64.
Spectrum rfft(const Value& x, Norm norm = Norm::kBackward);
// The n real values whose rfft the n/2 + 1 bins are; the imaginary parts of bin 0 and, for even n, the last one do not
// count.
Value irfft(const Spectrum& bins, int64_t n, Norm norm = Norm::kBackward);

enum class Padding { kReflect, kZeros };
struct StftOptions {
  int64_t frame_len = 0;
  int64_t hop = 0;
  std::optional<Value> window = std::nullopt;  // [frame_len]; absent: ones
  bool center = false;                         // frame t is about sample t * hop: frame_len / 2 more on either side
  Padding padding = Padding::kReflect;         // what stands there
};
// rfft of overlapping frames of x [..., T]: [..., frame_len / 2 + 1, frames], frames = 1 + (T - frame_len) / hop.
Spectrum stft(const Value& x, const StftOptions& options);

// The full linear convolution along the last axis, N + M - 1 values; other axes broadcast.
Value fft_conv1d(const Value& x, const Value& kernel);

// (re^2 + im^2) / divisor.
Value psd(const Spectrum& bins, double divisor);

// The frequency of each bin in cycles per sample, f32. Of an even n, bin n/2 is -0.5 for fftfreq and 0.5 for rfftfreq.
Tensor fftfreq(int64_t n);
Tensor rfftfreq(int64_t n);

}  // namespace rlx::signal
