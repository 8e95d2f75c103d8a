// ImageDecoder: the bytes of a picture file, known when they are imported, to pixels [height, width, channels].
// PNG, JPEG, BMP (stb_image), PNM and uncompressed TIFF.
#include "import/onnx/ops/image.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>
#include <memory>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include "import/onnx/ops.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28;

// No picture is compressed by more: a few bytes cannot ask for much memory.
constexpr int64_t kMostPixelsPerByte = 4096;

Pixels sized(int64_t height, int64_t width, size_t file_bytes) {
  const int64_t most = std::min(kMostPixels, static_cast<int64_t>(file_bytes) * kMostPixelsPerByte);
  require(height > 0 && width > 0 && width <= most / height, "A picture of ", width, " x ", height,
          " pixels is empty or too large.");
  Pixels p{height, width, {}};
  p.rgb.resize(static_cast<size_t>(height * width * 3));
  return p;
}

// ---- JPEG: stb_image reads the file, but the arithmetic is libjpeg's, so that pixels are those that Python, browsers
// and most training pipelines see, bit by bit (4:2:2 pictures aside: their chroma may differ by 1).

uint8_t to_byte(int v) { return static_cast<uint8_t>(std::clamp(v, 0, 255)); }

// Eight values of libjpeg's accurate integer transform, `step` apart. Sums wrap as a bad file's may.
void inverse_dct_8(const int32_t* in, int32_t* out, int step, int shift) {
  const auto x = [&](int i) { return static_cast<uint32_t>(in[i * step]); };
  const uint32_t even = (x(2) + x(6)) * 4433U;
  const uint32_t e2 = even - x(6) * 15137U, e3 = even + x(2) * 6270U;
  const uint32_t e0 = (x(0) + x(4)) * 8192U, e1 = (x(0) - x(4)) * 8192U;
  const uint32_t a[4] = {e0 + e3, e1 + e2, e1 - e2, e0 - e3};
  const uint32_t z5 = (x(7) + x(3) + x(5) + x(1)) * 9633U;
  const uint32_t z1 = (x(7) + x(1)) * 7373U, z2 = (x(5) + x(3)) * 20995U;
  const uint32_t z3 = z5 - (x(7) + x(3)) * 16069U, z4 = z5 - (x(5) + x(1)) * 3196U;
  const uint32_t b[4] = {x(1) * 12299U - z1 + z4, x(3) * 25172U - z2 + z3, x(5) * 16819U - z2 + z4,
                         x(7) * 2446U - z1 + z3};
  const auto scaled = [&](uint32_t v) { return static_cast<int32_t>(v + (1U << (shift - 1))) >> shift; };
  for (int i = 0; i < 4; ++i) {
    out[i * step] = scaled(a[i] + b[i]);
    out[(7 - i) * step] = scaled(a[i] - b[i]);
  }
}

void inverse_dct(stbi_uc* out, int stride, short data[64]) {
  int32_t in[64], columns[64], rows[64];
  std::copy(data, data + 64, in);
  for (int i = 0; i < 8; ++i) inverse_dct_8(in + i, columns + i, 8, 11);
  for (int i = 0; i < 8; ++i) inverse_dct_8(columns + 8 * i, rows + 8 * i, 1, 18);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) out[y * stride + x] = to_byte(std::clamp(rows[8 * y + x], -1024, 1024) + 128);
}

void to_rgb(stbi_uc* out, const stbi_uc* y, const stbi_uc* cb, const stbi_uc* cr, int count, int step) {
  for (int i = 0; i < count; ++i, out += step) {
    const int b = cb[i] - 128, r = cr[i] - 128;
    out[0] = to_byte(y[i] + ((91881 * r + 32768) >> 16));
    out[1] = to_byte(y[i] + ((-22554 * b - 46802 * r + 32768) >> 16));
    out[2] = to_byte(y[i] + ((116130 * b + 32768) >> 16));
  }
}

// Two samples for one, from the nearer and the farther row.
stbi_uc* twice(stbi_uc* out, stbi_uc* near, stbi_uc* far, int width, int) {
  const auto sum = [&](int i) { return 3 * near[i] + far[i]; };
  for (int i = 0; i < width; ++i) {
    const int here = sum(i), before = sum(std::max(i - 1, 0)), after = sum(std::min(i + 1, width - 1));
    out[2 * i] = static_cast<stbi_uc>((3 * here + before + 8) >> 4);
    out[2 * i + 1] = static_cast<stbi_uc>((3 * here + after + 7) >> 4);
  }
  return out;
}

using StbPixels = std::unique_ptr<stbi_uc, void (*)(void*)>;

StbPixels decode_jpeg(stbi__context& file, int& width, int& height) {
  const auto jpeg = std::make_unique<stbi__jpeg>();
  std::memset(jpeg.get(), 0, sizeof(stbi__jpeg));
  jpeg->s = &file;
  stbi__setup_jpeg(jpeg.get());
  jpeg->idct_block_kernel = inverse_dct;
  jpeg->YCbCr_to_RGB_kernel = to_rgb;
  jpeg->resample_row_hv_2_kernel = twice;
  int components = 0;
  return {load_jpeg_image(jpeg.get(), &width, &height, &components, 3), stbi_image_free};
}

Pixels decode_by_stb(std::span<const uint8_t> bytes) {
  require(bytes.size() <= INT_MAX, "A picture of ", bytes.size(), " bytes is too large.");
  const auto size = static_cast<int>(bytes.size());
  int width = 0, height = 0, components = 0;
  if (stbi_info_from_memory(bytes.data(), size, &width, &height, &components) == 0)
    fail(ErrorKind::kUnsupported, str("The picture is not a PNG, JPEG, BMP, PNM or plain TIFF file that rlx can read (",
                                      stbi_failure_reason(), ")."));
  Pixels p = sized(height, width, bytes.size());
  stbi__context file;
  stbi__start_mem(&file, bytes.data(), size);
  const bool is_jpeg = bytes.size() > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8;
  const StbPixels pixels =
      is_jpeg ? decode_jpeg(file, width, height)
              : StbPixels(stbi_load_from_memory(bytes.data(), size, &width, &height, &components, 3), stbi_image_free);
  require(pixels != nullptr && width == p.width && height == p.height, "The picture cannot be decoded (",
          stbi_failure_reason(), ").");
  std::copy_n(pixels.get(), p.rgb.size(), p.rgb.begin());
  return p;
}

// ---- PNM: P5 and P6, up to 255

Pixels decode_pnm(std::span<const uint8_t> bytes) {
  size_t at = 2;
  const auto number = [&] {
    for (; at < bytes.size() && (std::isspace(bytes[at]) != 0 || bytes[at] == '#'); ++at)
      if (bytes[at] == '#')
        at =
            static_cast<size_t>(std::find(bytes.begin() + static_cast<int64_t>(at), bytes.end(), '\n') - bytes.begin());
    int64_t value = 0;
    for (; at < bytes.size() && std::isdigit(bytes[at]) != 0 && value < kMostPixels; ++at)
      value = value * 10 + (bytes[at] - '0');
    return value;
  };
  const int64_t width = number(), height = number(), most = number();
  ++at;  // one white space
  require(most == 255, "The picture's brightest value is ", most, "; 255 is expected.");
  Pixels p = sized(height, width, bytes.size());
  const size_t channels = bytes[1] == '6' ? 3 : 1;
  require(at <= bytes.size() && bytes.size() - at >= p.rgb.size() / 3 * channels, "The picture file ends too early.");
  for (size_t i = 0; i < p.rgb.size(); ++i) p.rgb[i] = bytes[at + (channels == 3 ? i : i / 3)];
  return p;
}

// ---- TIFF: the first picture, 8 bits, grey or RGB, strips without compression

class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes) : bytes_(bytes), little_(bytes[0] == 'I') {}

  Pixels decode() const {
    const int64_t width = value(256, 0), height = value(257, 0), channels = value(277, 1);
    require(value(259, 1) == 1 && value(258, 1) == 8 && value(284, 1) == 1 && (channels == 1 || channels >= 3) &&
                channels <= 4,
            "The TIFF picture is compressed or does not have 8 bits per value; only plain ones can be read.");
    Pixels p = sized(height, width, bytes_.size());
    const int64_t rows = std::clamp<int64_t>(value(278, height), 1, height);
    for (int64_t y = 0; y < height; ++y) {
      const int64_t begin = value(273, 0, y / rows) + y % rows * width * channels;
      require(begin >= 0 && begin + width * channels <= size(), "The picture file ends too early.");
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < 3; ++c)
          p.rgb[static_cast<size_t>((y * width + x) * 3 + c)] =
              bytes_[static_cast<size_t>(begin + x * channels + (channels == 1 ? 0 : c))];
    }
    return p;
  }

 private:
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  int64_t number(int64_t at, int64_t count) const {
    require(at >= 0 && at + count <= size(), "The picture file ends too early.");
    int64_t v = 0;
    for (int64_t i = 0; i < count; ++i) v = v * 256 + bytes_[static_cast<size_t>(at + (little_ ? count - 1 - i : i))];
    return v;
  }

  // Element `index` of a tag of the first directory, 16- or 32-bit numbers.
  int64_t value(int64_t tag, int64_t otherwise, int64_t index = 0) const {
    const int64_t directory = number(4, 4), count = number(directory, 2);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t entry = directory + 2 + 12 * i;
      if (number(entry, 2) != tag) continue;
      const int64_t width = number(entry + 2, 2) == 3 ? 2 : 4, elements = number(entry + 4, 4);
      require(index < elements, "The picture file has ", elements, " elements where more are needed.");
      const int64_t first = elements * width <= 4 ? entry + 8 : number(entry + 8, 4);
      return number(first + index * width, width);
    }
    return otherwise;
  }

  std::span<const uint8_t> bytes_;
  bool little_;
};

Built image_decoder(OnnxNode& n) {
  const Tensor file = n.known(0);
  require(file.dtype() == DType::U8 && file.rank() == 1, "The file (", file.type(), ") is not a list of bytes.");
  const Pixels p = decode_picture(file.values<uint8_t>());
  const std::string format = n.attr("pixel_format", "RGB");
  require(format == "RGB" || format == "BGR" || format == "Grayscale", "The pixel format '", format, "' is not known.");
  const bool grey = format == "Grayscale";
  Tensor y(DType::U8, {p.height, p.width, grey ? 1 : 3});
  const std::span<uint8_t> out = y.mutable_values<uint8_t>();
  for (size_t i = 0; i < p.rgb.size(); i += 3) {
    const uint8_t* rgb = p.rgb.data() + i;
    if (grey) {
      out[i / 3] = static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
    } else {
      for (size_t c = 0; c < 3; ++c) out[i + c] = rgb[format == "RGB" ? c : 2 - c];
    }
  }
  return n.constant(y);
}

}  // namespace

Pixels decode_picture(std::span<const uint8_t> bytes) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  if (head.starts_with("P5") || head.starts_with("P6")) return decode_pnm(bytes);
  if (head == std::string_view("II*\0", 4) || head == std::string_view("MM\0*", 4)) return Tiff(bytes).decode();
  return decode_by_stb(bytes);
}

Rows image_rows() { return {{"ImageDecoder", 20, image_decoder}}; }

}  // namespace rlx::onnx
