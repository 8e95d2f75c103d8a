#include "text/charsmap.h"

#include "rlx/error.h"

namespace rlx::text {

static uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

Charsmap::Charsmap(std::string_view bytes) {
  if (bytes.empty()) return;
  require(bytes.size() >= 4, "The precompiled character map (", bytes.size(), " bytes) ends before its size.");
  const size_t size = read_u32(bytes, 0);
  require(size % 4 == 0 && size <= bytes.size() - 4, "The precompiled character map says that its table has ", size,
          " bytes, but ", bytes.size() - 4, " follow.");
  for (size_t at = 4; at < 4 + size; at += 4) units_.push_back(read_u32(bytes, at));
  texts_ = bytes.substr(4 + size);
  texts_ += '\0';  // so that the last text ends, whatever the file says
}

// A unit holds its label (bits 0-7), whether a value hangs below it (bit 8), and how far its children are (bits 10-30,
// times 256 where bit 9 is set); a value has bit 31 set.
static uint32_t children_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

std::optional<Charsmap::Replacement> Charsmap::find(std::string_view text, bool stop_at_first) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Replacement> best;
  uint32_t node = children_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFF)) != byte) break;
    node ^= children_of(unit);
    if (unit >> 8 & 1) {
      if (node >= units_.size()) break;
      const size_t at = units_[node] & 0x7FFFFFFF;
      if (at >= texts_.size()) break;
      best = {std::string_view(texts_.c_str() + at), i + 1};
      if (stop_at_first) break;
    }
  }
  return best;
}

}  // namespace rlx::text
