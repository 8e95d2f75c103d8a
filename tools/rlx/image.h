// Pictures as tensors: --input x=photo.jpg.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common.h"

namespace rlx::cli {

// What becomes of a pixel: (pixel * scale - mean) / std, each one number or one per channel.
struct ImageArgs {
  std::optional<double> scale;  // by default 1/255 for floats and 1 for integers
  std::vector<double> mean, std;
  bool bgr = false;
};
void add_image_options(CLI::App& app, ImageArgs& args);

// Does the file's name end like a picture's?
bool is_image(const std::string& path);

// The picture in the layout of `type`: [N, C, H, W], [N, H, W, C], either without N, or [H, W] in grey. Where the type
// has a height and a width the picture is stretched to them; it says so in a warning.
Tensor read_image(const std::string& path, const std::string& input, const TensorType& type, const ImageArgs& args);

}  // namespace rlx::cli
