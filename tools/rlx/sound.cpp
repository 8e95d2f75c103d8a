#include "sound.h"

#include <algorithm>
#include <cmath>

#include "core/wav.h"

namespace rlx::cli {

bool is_sound(const std::string& path) { return path.ends_with(".wav") || path.ends_with(".WAV"); }

Tensor read_sound(const std::string& path, const std::string& input, const TensorType& type) {
  const Wav wav = read_wav(path);
  const int64_t rank = type.rank();
  const auto is_one = [&](int64_t axis) { return !type.dim(axis).is_static() || type.dim(axis).is(1); };
  const bool keeps_channels = rank >= 2 && wav.channels > 1 && type.dim(rank - 2).is(wav.channels);
  const bool fits =
      rank >= 1 && rank <= 3 && (rank < 2 || keeps_channels || is_one(rank - 2)) && (rank < 3 || is_one(0));
  require(fits, "Input '", input, "' (", type, ") takes no sound of ", wav.channels,
          wav.channels == 1 ? " channel" : " channels", "; [N], [1, N] and [1, 1, N] do.");
  require(is_float(type.dtype) || type.dtype == DType::I16, "Input '", input, "' (", type,
          ") takes no sound: its dtype is neither a float type nor i16.");
  require(!type.dim(rank - 1).is_static() || type.dim(rank - 1).is(wav.frames()), "Input '", input, "' (", type,
          ") takes ", type.dim(rank - 1), " samples; '", path, "' has ", wav.frames(), " at ", wav.rate, " Hz.");

  const int64_t channels = keeps_channels ? wav.channels : 1;
  std::vector<double> values(static_cast<size_t>(channels * wav.frames()));
  for (int64_t frame = 0; frame < wav.frames(); ++frame) {
    const float* samples = wav.samples.data() + frame * wav.channels;
    double sum = 0;
    for (int64_t c = 0; c < wav.channels; ++c) {
      if (keeps_channels) values[static_cast<size_t>(c * wav.frames() + frame)] = double{samples[c]};
      sum += double{samples[c]};
    }
    if (!keeps_channels) values[static_cast<size_t>(frame)] = sum / static_cast<double>(wav.channels);
  }
  if (type.dtype == DType::I16)
    for (double& x : values) x = std::clamp(std::round(x * 0x1p15), -0x1p15, 0x1p15 - 1);
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes.back() = wav.frames();
  if (rank >= 2) sizes[static_cast<size_t>(rank - 2)] = channels;
  return Tensor::from_doubles(type.dtype, std::move(sizes), values);
}

}  // namespace rlx::cli
