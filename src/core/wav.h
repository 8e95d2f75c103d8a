// Sound files: RIFF/WAVE with samples of 8, 16, 24 or 32 bits, or floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rlx {

struct Wav {
  int64_t rate = 0;            // frames per second
  int64_t channels = 0;        // at least 1
  std::vector<float> samples;  // frames, one after the other, a sample of each channel; integers as -1 … 1

  int64_t frames() const { return static_cast<int64_t>(samples.size()) / channels; }
};

// Malformed or truncated files are Error(kInvalid), compressed ones Error(kUnsupported). A data chunk of 2 GB
// or more that is not there was written to a pipe, by somebody who did not know its size: it reaches to the file's end.
Wav read_wav(const std::string& path);
Wav parse_wav(std::span<const std::byte> bytes, const std::string& where = "data");  // `where`: for messages

}  // namespace rlx
