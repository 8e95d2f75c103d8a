#include "image.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <memory>

#include "core/mapped_file.h"
#include "rlx/log.h"

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>

namespace rlx::cli {

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28;

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> values;  // row by row, all channels of a pixel side by side
};

// Which axes of an input are a picture's.
struct Layout {
  int64_t channels = 0;
  Dim height, width;
  bool channels_last = false;
};

bool is_channels(const Dim& d) { return d.is(1) || d.is(3) || d.is(4); }

Layout layout_of(const std::string& input, const TensorType& type) {
  const int64_t rank = type.rank();
  const auto refuse = [&](std::string_view why) {
    fail(ErrorKind::kInvalid, str("Input '", input, "' (", type, ") takes no picture: ", why, "."));
  };
  if (rank < 2 || rank > 4) refuse("it is not of rank 2 to 4");
  if (rank == 4 && type.dim(0).is_static() && !type.dim(0).is(1)) refuse("it takes several at once");
  if (rank == 2) return {1, type.dim(0), type.dim(1), false};
  const Dim &a = type.dim(rank - 3), &b = type.dim(rank - 2), &c = type.dim(rank - 1);
  if (is_channels(a)) return {a.value(), b, c, false};
  if (is_channels(c)) return {c.value(), a, b, true};
  if (a.is_static()) refuse("neither its first nor its last axis is 1, 3 or 4 channels");
  return {3, b, c, false};
}

Pixels decode(const std::string& path, int64_t channels) {
  const auto file = MappedFile::open(path);
  const auto* data = reinterpret_cast<const stbi_uc*>(file->bytes().data());
  require(file->bytes().size() <= INT_MAX, "Picture '", path, "' is larger than 2 GB.");
  const auto size = static_cast<int>(file->bytes().size());
  int width = 0, height = 0, in_file = 0;
  const auto check = [&](bool ok) {
    require(ok, "Picture '", path, "' cannot be read as PNG, JPEG or BMP (", stbi_failure_reason(), ").");
  };
  check(stbi_info_from_memory(data, size, &width, &height, &in_file) != 0);
  require(int64_t{width} * height <= kMostPixels, "Picture '", path, "' (", width, " x ", height,
          ") has more than 2^28 pixels.");
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(data, size, &width, &height, &in_file, static_cast<int>(channels)), stbi_image_free);
  check(pixels != nullptr);
  Pixels out{height, width, channels, {}};
  out.values.assign(pixels.get(), pixels.get() + int64_t{width} * height * channels);
  return out;
}

// Each result is a weighted mean of all pixels it covers, with the triangle's weights: "bilinear" of PIL and
// torchvision.
Pixels resized(const Pixels& in, int64_t height, int64_t width) {
  Pixels out{height, width, in.channels, {}};
  require(height > 0 && width > 0 && checked_mul(height, width) <= kMostPixels, "A picture cannot be stretched to ",
          width, " x ", height, ".");
  out.values.resize(static_cast<size_t>(height * width * in.channels));
  const int ok = stbir_resize_uint8_generic(in.values.data(), static_cast<int>(in.width), static_cast<int>(in.height),
                                            0, out.values.data(), static_cast<int>(width), static_cast<int>(height), 0,
                                            static_cast<int>(in.channels), STBIR_ALPHA_CHANNEL_NONE, 0,
                                            STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr);
  require(ok != 0, "There is not enough memory to stretch the picture.");
  return out;
}

double of_channel(const std::vector<double>& list, int64_t channel, double otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : list[static_cast<size_t>(channel)];
}

void check_count(const std::vector<double>& list, std::string_view option, int64_t channels) {
  require(list.size() <= 1 || static_cast<int64_t>(list.size()) == channels, "Option ", option, " has ", list.size(),
          " numbers for a picture of ", channels, channels == 1 ? " channel." : " channels.");
}

}  // namespace

void add_image_options(CLI::App& app, ImageArgs& args) {
  const auto list = [&](const std::string& name, std::vector<double>& values, const std::string& doc) {
    app.add_option(name, values, doc)->delimiter(',')->allow_extra_args(false)->option_text("X[,Y,Z]");
  };
  app.add_option("--scale", args.scale, "of pictures: multiply each pixel; by default 1/255 for floats, 1 for integers")
      ->option_text("X");
  list("--mean", args.mean, "of pictures: then subtract, one number or one per channel");
  list("--std", args.std, "of pictures: then divide by");
  app.add_flag("--bgr", args.bgr, "of pictures: blue first instead of red first");
}

bool is_image(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == path.npos) return false;
  std::string extension = path.substr(dot);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".bmp";
}

Tensor read_image(const std::string& path, const std::string& input, const TensorType& type, const ImageArgs& args) {
  const Layout layout = layout_of(input, type);
  const int64_t channels = layout.channels;
  require(is_float(type.dtype) || (is_int(type.dtype) && type.dtype != DType::I8), "Input '", input, "' (", type,
          ") takes no picture: its dtype does not hold pixels.");
  check_count(args.mean, "--mean", channels);
  check_count(args.std, "--std", channels);
  Pixels pixels = decode(path, channels);
  const int64_t height = layout.height.is_static() ? layout.height.value() : pixels.height;
  const int64_t width = layout.width.is_static() ? layout.width.value() : pixels.width;
  if (height != pixels.height || width != pixels.width) {
    log(LogLevel::kWarning, str("Picture '", path, "' (", pixels.width, " x ", pixels.height, ") is stretched to ",
                                width, " x ", height, ", the size of input '", input, "'."));
    pixels = resized(pixels, height, width);
  }

  std::vector<double> values(pixels.values.size());
  const double scale = args.scale.value_or(is_float(type.dtype) ? 1.0 / 255 : 1.0);
  const int64_t area = height * width;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = of_channel(args.mean, c, 0), std = of_channel(args.std, c, 1);
    const int64_t from = args.bgr && channels >= 3 && c < 3 ? 2 - c : c;
    for (int64_t i = 0; i < area; ++i) {
      const double x = pixels.values[static_cast<size_t>(i * channels + from)];
      values[static_cast<size_t>(layout.channels_last ? i * channels + c : c * area + i)] = (x * scale - mean) / std;
    }
  }
  std::vector<int64_t> sizes;
  if (type.rank() == 4) sizes.push_back(1);
  if (type.rank() > 2 && !layout.channels_last) sizes.push_back(channels);
  sizes.insert(sizes.end(), {height, width});
  if (layout.channels_last) sizes.push_back(channels);
  return Tensor::from_doubles(type.dtype, std::move(sizes), values);
}

}  // namespace rlx::cli
