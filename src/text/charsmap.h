// SentencePiece's precompiled character map: a double array that leads from the start of a text to its replacement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text {

class Charsmap {
 public:
  Charsmap() = default;
  explicit Charsmap(std::string_view bytes);  // empty: no replacements

  bool empty() const { return units_.empty(); }

  struct Replacement {
    std::string_view text;  // lives as long as the map
    size_t size = 0;        // bytes of the source that it stands for
  };
  std::optional<Replacement> shortest(std::string_view text) const { return find(text, true); }
  std::optional<Replacement> longest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Replacement> find(std::string_view text, bool stop_at_first) const;

  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace rlx::text
