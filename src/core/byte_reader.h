// ByteReader: walks over bytes that came from a file, and never past their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

// Little-endian values, one after the other. A read that does not fit throws Error(kInvalid) that names what was read,
// the offset and the size; the reader stays where it was. `where` names the data in messages: "model.gguf".
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes, std::string where = "data");

  size_t offset() const { return offset_; }
  size_t size() const { return bytes_.size(); }
  size_t remaining() const { return bytes_.size() - offset_; }
  bool at_end() const { return remaining() == 0; }
  const std::string& where() const { return where_; }

  uint8_t u8(std::string_view what = "u8") { return static_cast<uint8_t>(little_endian(1, what)); }
  uint16_t u16(std::string_view what = "u16") { return static_cast<uint16_t>(little_endian(2, what)); }
  uint32_t u32(std::string_view what = "u32") { return static_cast<uint32_t>(little_endian(4, what)); }
  uint64_t u64(std::string_view what = "u64") { return little_endian(8, what); }
  int8_t i8(std::string_view what = "i8") { return static_cast<int8_t>(little_endian(1, what)); }
  int16_t i16(std::string_view what = "i16") { return static_cast<int16_t>(little_endian(2, what)); }
  int32_t i32(std::string_view what = "i32") { return static_cast<int32_t>(little_endian(4, what)); }
  int64_t i64(std::string_view what = "i64") { return static_cast<int64_t>(little_endian(8, what)); }
  float f32(std::string_view what = "f32");
  double f64(std::string_view what = "f64");

  // The next `count` bytes, borrowed. 64 bits, so that a count read from a file is not cut off before it is checked.
  std::span<const std::byte> bytes(uint64_t count, std::string_view what = "bytes");
  std::string_view text(uint64_t count, std::string_view what = "text");

  void skip(uint64_t count, std::string_view what = "bytes") { bytes(count, what); }
  void seek(uint64_t offset, std::string_view what = "offset");  // the end itself is allowed

 private:
  uint64_t little_endian(size_t count, std::string_view what);

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
  std::string where_;
};

}  // namespace rlx
