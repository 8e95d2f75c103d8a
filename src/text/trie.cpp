#include "text/trie.h"

namespace rlx::text {

static uint64_t edge(int32_t node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte); }

void Trie::insert(std::string_view key, int32_t value) {
  int32_t node = 0;
  for (const char byte : key) {
    int32_t next = step(node, byte);
    if (next == kNone) {
      next = static_cast<int32_t>(values_.size());
      values_.push_back(kNone);
      if (node == 0)
        first_[static_cast<uint8_t>(byte)] = next;
      else
        edges_.emplace(edge(node, byte), next);
    }
    node = next;
  }
  values_[static_cast<size_t>(node)] = value;
}

int32_t Trie::step(int32_t node, char byte) const {
  if (node == 0) {
    const int32_t next = first_[static_cast<uint8_t>(byte)];
    return next == 0 ? kNone : next;
  }
  const auto found = edges_.find(edge(node, byte));
  return found == edges_.end() ? kNone : found->second;
}

Trie::Found Trie::longest(std::string_view text) const {
  Found best;
  int32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (node == kNone) break;
    if (value(node) != kNone) best = {value(node), i + 1};
  }
  return best;
}

}  // namespace rlx::text
