// safetensors bytes for tests: right ones, and ones that lie.
#pragma once

#include <cstring>
#include <string>

namespace rlx::test {

// The header's text and the data behind it. `length` is what the file claims; by default the truth.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  const uint64_t length = header.size();
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(length >> (8 * i));
  return out + header + data;
}

// One entry of a header, with the braces of neither side.
inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                         int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace rlx::test
