// Pieces and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rlx::text {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

class Vocabulary {
 public:
  // Ids may leave holes; a piece that has an id already gets the new one.
  void add(std::string_view piece, int64_t id);
  void set_piece(int32_t id, std::string_view piece) { pieces_[static_cast<size_t>(id)] = piece; }

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  const std::string& piece(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  std::optional<int32_t> find(std::string_view piece) const;

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
};

}  // namespace rlx::text
