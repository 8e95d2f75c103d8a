#include "core/byte_reader.h"

#include <bit>
#include <utility>

#include "rlx/error.h"

namespace rlx {

ByteReader::ByteReader(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

std::span<const std::byte> ByteReader::bytes(uint64_t count, std::string_view what) {
  // Compared with what is left: offset + count could wrap around.
  require(count <= remaining(), "Reading ", what, " (", count, " bytes) at offset ", offset_, " of ", where_,
          " goes beyond its end (", size(), " bytes).");
  const auto out = bytes_.subspan(offset_, static_cast<size_t>(count));
  offset_ += static_cast<size_t>(count);
  return out;
}

std::string_view ByteReader::text(uint64_t count, std::string_view what) {
  const auto raw = bytes(count, what);
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

void ByteReader::seek(uint64_t offset, std::string_view what) {
  require(offset <= size(), "Moving to ", what, " (", offset, ") in ", where_, " goes beyond its end (", size(),
          " bytes).");
  offset_ = static_cast<size_t>(offset);
}

uint64_t ByteReader::little_endian(size_t count, std::string_view what) {
  uint64_t value = 0;
  const auto raw = bytes(count, what);
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(raw[i]) << (8 * i);
  return value;
}

float ByteReader::f32(std::string_view what) { return std::bit_cast<float>(u32(what)); }
double ByteReader::f64(std::string_view what) { return std::bit_cast<double>(u64(what)); }

}  // namespace rlx
