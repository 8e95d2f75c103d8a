// Tokens that are found in the text itself, before a model sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/trie.h"

namespace rlx::text {

// As Hugging Face's: a token may ask for word borders, take the white space beside it, and be special.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// A part of a text: one of the tokens (id >= 0), or text that has none.
struct Fragment {
  size_t start = 0, size = 0;
  int32_t id = -1;
};

class AddedTokens {
 public:
  void add(AddedToken token, std::string_view written);  // `written`: as it stands in the text that is searched
  bool empty() const { return tokens_.empty(); }

  // The longest token at the leftmost place, again and again. Special ones are text unless asked for.
  std::vector<Fragment> find(std::string_view text, bool parse_special) const;

 private:
  Trie trie_;
  std::vector<AddedToken> tokens_;
};

// llama.cpp's way: the longest token of all first, wherever it stands, then the next in what is left.
struct ControlToken {
  std::string content;
  int32_t id = 0;
  bool special = false;  // control and unknown tokens; user-defined ones are always parsed
  bool lstrip = false, rstrip = false;
};

class ControlTokens {
 public:
  explicit ControlTokens(std::vector<ControlToken> tokens = {});
  std::vector<Fragment> find(std::string_view text, bool parse_special) const;

 private:
  std::vector<ControlToken> tokens_;  // longest first
  Trie trie_;
};

}  // namespace rlx::text
