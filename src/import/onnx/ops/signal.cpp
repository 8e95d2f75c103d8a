// Fourier transforms, windows and the mel matrix.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "rlx/signal.h"

namespace rlx::onnx {

namespace {

// Along the last axis: cut off, or zeros put after it.
Value with_length(OnnxNode& n, const Value& x, int64_t length) {
  const int64_t axis = x.shape().rank() - 1;
  const int64_t have = x.shape()[axis].value();
  if (have > length) return ops::narrow(x, {.axis = axis, .start = 0, .len = length});
  return pad_axis(n, x, axis, 0, length - have);
}

struct Dft {
  int64_t axis;
  std::optional<int64_t> length;
  bool inverse = false, onesided = false;
};

// x: any axes, the last one real or real and imaginary.
Value dft_of(OnnxNode& n, const Value& input, const Dft& dft) {
  const DType dtype = input.dtype();
  const Value x = cast_to(input, dtype == DType::F64 ? DType::F64 : DType::F32);
  const int64_t rank = x.shape().rank();
  const int64_t axis = normalize_axis(dft.axis, rank);
  require(rank >= 2 && axis < rank - 1, "Axis (", dft.axis, ") is not one before the last axis of rank ", rank, ".");
  const int64_t parts = x.shape()[rank - 1].value(), size = x.shape()[axis].value();
  require(parts == 1 || parts == 2, "The last axis has size ", parts, "; 1 (real) or 2 (complex) is expected.");
  const bool real_result = dft.inverse && dft.onesided;
  const int64_t length = dft.length.value_or(real_result ? checked_mul(2, size - 1) : size);
  require(length > 0 && length < (int64_t{1} << 31), "The length (", length, ") of the transform is out of range.");
  const int64_t bins = length / 2 + 1;
  // [..., parts, samples]
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis) perm.push_back(i);
  perm.insert(perm.end(), {rank - 1, axis});
  Value moved = with_length(n, ops::transpose(x, {.perm = perm}), real_result ? bins : length);
  if (parts == 1) moved = pad_axis(n, moved, rank - 2, 0, 1);
  if (real_result) {
    const Value re = squeeze(ops::narrow(moved, {.axis = rank - 2, .start = 0, .len = 1}), {rank - 2});
    const Value im = squeeze(ops::narrow(moved, {.axis = rank - 2, .start = 1, .len = 1}), {rank - 2});
    moved = unsqueeze(signal::irfft({re, im}, length), {rank - 2});
  } else {
    const std::vector<Dim> shape = moved.shape().dims();
    std::vector<Dim> flat(shape.begin(), shape.end() - 2);
    flat.emplace_back(2 * length);
    const Value y =
        ops::fft(reshape_to(moved, flat), {.inverse = dft.inverse, .norm = ops::FftNorm::kForward});  // 1, 1 / N
    moved = reshape_to(y, shape);
    if (dft.onesided) moved = ops::narrow(moved, {.axis = rank - 1, .start = 0, .len = bins});
  }
  std::vector<int64_t> back(static_cast<size_t>(rank));
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return cast_to(ops::transpose(moved, {.perm = back}), dtype);
}

Built dft(OnnxNode& n) {
  Dft dft{n.opset() < 20 ? n.attr("axis", 1) : (n.has(2) ? n.int_value(2) : -2)};
  if (n.has(1)) dft.length = n.int_value(1);
  dft.inverse = n.attr("inverse", false);
  dft.onesided = n.attr("onesided", false);
  return dft_of(n, n.input(0), dft);
}

Built stft(OnnxNode& n) {
  Value x = n.input(0);
  if (x.shape().rank() == 2) x = unsqueeze(x, {2});
  require(x.shape().rank() == 3, "The signal (", x.type(), ") is not [batch, samples, 1 or 2].");
  const int64_t samples = x.shape()[1].value(), step = n.int_value(1);
  const int64_t length = n.has(3) ? n.int_value(3) : (n.has(2) ? n.input(2).shape()[0].value() : samples);
  require(step > 0 && length > 0 && length <= samples, "Frames of ", length, " samples, ", step,
          " apart, do not fit in ", samples, " samples.");
  const int64_t width = n.has(2) ? n.input(2).shape()[0].value() : length;  // of the window
  require(width <= length, "The window has ", width, " samples, more than a frame (", length, ").");
  const int64_t frames = 1 + (samples - length) / step;
  require(checked_mul(frames, width) <= 1 << 26, "There are ", frames, " frames of ", width, " samples: too many.");
  std::vector<int64_t> at;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < width; ++i) at.push_back(f * step + i);
  const Value indices = n.constant(Tensor::i64({frames, width}, std::move(at)));
  Value framed = ops::gather(x, indices, {.axis = 1});  // [batch, frames, width, parts]
  if (n.has(2)) framed = framed * unsqueeze(cast_to(n.input(2), x.dtype()), {1});
  return dft_of(n, framed, {.axis = 2, .length = length, .onesided = n.attr("onesided", true)});
}

// a - b cos(2 pi i / N) + c cos(4 pi i / N), N one less when the window is symmetric.
Value window(OnnxNode& n, double a, double b, double c) {
  const int64_t size = n.int_value(0);
  require(size >= 0 && size <= 1 << 24, "The size (", size, ") of the window is out of range.");
  const int64_t period = n.attr("periodic", true) ? size : size - 1;
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double t = period == 0 ? 0.5 : static_cast<double>(i) / static_cast<double>(period);
    values.push_back(a - b * std::cos(2 * std::numbers::pi * t) + c * std::cos(4 * std::numbers::pi * t));
  }
  return n.constant(
      Tensor::from_doubles(storage_of(static_cast<ElemType>(n.attr("output_datatype", 1))), {size}, values));
}

Built hann_window(OnnxNode& n) { return window(n, 0.5, 0.5, 0); }
Built hamming_window(OnnxNode& n) { return window(n, 25.0 / 46, 21.0 / 46, 0); }
Built blackman_window(OnnxNode& n) { return window(n, 0.42, 0.5, 0.08); }

// Triangles with edges at bins that are evenly spaced in mel.
Built mel_weight_matrix(OnnxNode& n) {
  const int64_t mels = n.int_value(0), length = n.int_value(1), rate = n.int_value(2);
  const double low = n.float_value(3), high = n.float_value(4);
  require(mels >= 0 && mels < (1 << 20) && length > 0 && length < (1 << 24) && rate > 0, "There are ", mels,
          " mel bins, a transform of length ", length, " and ", rate, " samples per second.");
  const int64_t bins = length / 2 + 1;
  require(bins * mels <= 1 << 24, "A matrix of ", bins, " times ", mels, " weights is too large.");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(mels + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    require(bin >= 0 && bin < static_cast<double>(bins), "The frequency ", hertz, " is not one of the transform's.");
    edges.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> values(static_cast<size_t>(bins * mels), 0.0);
  for (int64_t m = 0; m < mels; ++m) {
    const auto at = [&](int64_t bin) -> double& { return values[static_cast<size_t>(bin * mels + m)]; };
    const int64_t left = edges[static_cast<size_t>(m)], center = edges[static_cast<size_t>(m + 1)],
                  right = edges[static_cast<size_t>(m + 2)];
    if (center == left) at(center) = 1;
    for (int64_t j = left; j <= center && center > left; ++j)
      at(j) = static_cast<double>(j - left) / static_cast<double>(center - left);
    for (int64_t j = center; j < right; ++j)
      at(j) = static_cast<double>(right - j) / static_cast<double>(right - center);
  }
  return n.constant(
      Tensor::from_doubles(storage_of(static_cast<ElemType>(n.attr("output_datatype", 1))), {bins, mels}, values));
}

}  // namespace

Rows signal_rows() {
  return {
      {"BlackmanWindow", 17, blackman_window},    {"DFT", 17, dft},
      {"HammingWindow", 17, hamming_window},      {"HannWindow", 17, hann_window},
      {"MelWeightMatrix", 17, mel_weight_matrix}, {"STFT", 17, stft},
  };
}

}  // namespace rlx::onnx
