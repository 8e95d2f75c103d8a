// Picture files to pixels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rlx::onnx {

struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // row by row, three values per pixel
};

// Throws when the bytes are no picture that it knows.
Pixels decode_picture(std::span<const uint8_t> bytes);

}  // namespace rlx::onnx
