#include "core/wav.h"

#include <optional>

#include "core/byte_reader.h"
#include "core/mapped_file.h"
#include "rlx/error.h"

namespace rlx {

namespace {

constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr uint64_t kUnknownSize = 0x7FFF0000;  // and above: the writer streamed, and did not know

struct Format {
  uint16_t tag = 0, channels = 0, bits = 0;
  uint32_t rate = 0;
};

Format read_format(ByteReader chunk) {
  Format f;
  f.tag = chunk.u16("the sample format");
  f.channels = chunk.u16("the number of channels");
  f.rate = chunk.u32("the sample rate");
  chunk.skip(6, "byte rate and block size");
  f.bits = chunk.u16("the bits of a sample");
  if (f.tag == kExtensible) {  // the format proper is the head of a GUID
    chunk.skip(8, "the format's extension");
    f.tag = chunk.u16("the sample format");
  }
  const std::string& where = chunk.where();
  require(f.channels > 0, "Sound '", where, "' has no channels.");
  require(f.rate > 0, "Sound '", where, "' has a sample rate of 0.");
  const bool is_pcm = f.tag == kPcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  const bool is_float = f.tag == kFloat && (f.bits == 32 || f.bits == 64);
  if (!is_pcm && !is_float)
    fail(ErrorKind::kUnsupported, str("Sound '", where, "' has samples of format ", f.tag, " with ", f.bits,
                                      " bits; PCM of 8, 16, 24 or 32 bits and floats of 32 or 64 can be read."));
  return f;
}

float read_sample(ByteReader& data, const Format& f) {
  if (f.tag == kFloat) return f.bits == 32 ? data.f32() : static_cast<float>(data.f64());
  switch (f.bits) {
    case 8: return static_cast<float>(data.u8() - 128) / 0x1p7f;  // the only unsigned one
    case 16: return static_cast<float>(data.i16()) / 0x1p15f;
    case 24: {
      const uint32_t low = data.u16(), high = data.u8();
      return static_cast<float>(static_cast<int32_t>((low | high << 16) << 8) >> 8) / 0x1p23f;
    }
    default: return static_cast<float>(data.i32()) / 0x1p31f;
  }
}

}  // namespace

Wav parse_wav(std::span<const std::byte> bytes, const std::string& where) {
  ByteReader file(bytes, where);
  require(file.remaining() >= 12, "File '", where, "' is not a WAV file.");
  const std::string_view riff = file.text(4);
  file.skip(4);  // its size, which the chunks say too
  const std::string_view wave = file.text(4);
  require(riff == "RIFF" && wave == "WAVE", "File '", where, "' is not a WAV file.");
  std::optional<Format> format;
  while (true) {
    const std::string_view id = file.text(4, "a chunk's name");
    uint64_t size = file.u32("a chunk's size");
    if (id == "data") {
      require(format.has_value(), "Sound '", where, "' has no 'fmt ' chunk before its data.");
      if (size > file.remaining() && size >= kUnknownSize) size = file.remaining();
      const uint64_t frame = uint64_t{format->channels} * (format->bits / 8);
      const uint64_t frames = size / frame;
      ByteReader data(file.bytes(frames * frame, "the samples"), where);
      Wav wav{.rate = format->rate, .channels = format->channels};
      wav.samples.resize(static_cast<size_t>(frames) * format->channels);
      for (float& sample : wav.samples) sample = read_sample(data, *format);
      return wav;
    }
    const auto chunk = file.bytes(size, "a chunk");
    if (id == "fmt ") format = read_format(ByteReader(chunk, where));
    if (size % 2 == 1 && !file.at_end()) file.skip(1);  // chunks begin at even offsets
    require(!file.at_end(), "Sound '", where, "' has no 'data' chunk.");
  }
}

Wav read_wav(const std::string& path) { return parse_wav(MappedFile::open(path)->bytes(), path); }

}  // namespace rlx
