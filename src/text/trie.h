// Strings and the numbers they stand for, walked byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rlx::text {

class Trie {
 public:
  static constexpr int32_t kNone = -1;

  // A string that is there already gets the new value.
  void insert(std::string_view key, int32_t value);

  // The node that `byte` leads to from `node` (0 is the root), or kNone.
  int32_t step(int32_t node, char byte) const;
  int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }

  // The longest string at the start of text: its value and size; kNone and 0 where there is none.
  struct Found {
    int32_t value = kNone;
    size_t size = 0;
  };
  Found longest(std::string_view text) const;

 private:
  std::unordered_map<uint64_t, int32_t> edges_;  // node << 8 | byte: a table per node would be mostly empty
  std::vector<int32_t> values_ = {kNone};
  int32_t first_[256] = {};  // the root's edges; 0 where there is none
};

}  // namespace rlx::text
