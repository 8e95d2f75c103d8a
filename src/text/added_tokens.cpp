#include "text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>

#include "text/unicode.h"

namespace rlx::text {

static bool is_word_character(char32_t c) {
  const auto k = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D;
}

static bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(first_character(text).code);
}

static bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t start = text.size() - 1;
  while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
  return is_word_character(first_character(text.substr(start)).code);
}

void AddedTokens::add(AddedToken token, std::string_view written) {
  if (written.empty()) return;
  if (trie_.longest(written).size == written.size()) return;  // the first of two that are written alike
  trie_.insert(written, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(std::move(token));
}

std::vector<Fragment> AddedTokens::find(std::string_view text, bool parse_special) const {
  std::vector<Fragment> fragments;
  size_t done = 0;  // what lies before is in fragments
  for (size_t pos = 0; pos < text.size();) {
    const Trie::Found found = trie_.longest(text.substr(pos));
    if (found.size == 0) {
      ++pos;
      continue;
    }
    size_t start = pos, end = pos + found.size;
    pos = end;
    const AddedToken& token = tokens_[static_cast<size_t>(found.value)];
    if (token.special && !parse_special) continue;
    if (token.single_word && (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(end)))) continue;
    if (token.lstrip) start = std::max(strip_right(text.substr(0, start)).size(), done);
    if (token.rstrip) end = text.size() - strip_left(text.substr(end)).size();
    if (start > done) fragments.push_back({done, start - done, -1});
    fragments.push_back({start, end - start, token.id});
    done = end;
  }
  if (done < text.size()) fragments.push_back({done, text.size() - done, -1});
  return fragments;
}

ControlTokens::ControlTokens(std::vector<ControlToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const ControlToken& t) { return t.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const ControlToken& a, const ControlToken& b) { return a.content.size() > b.content.size(); });
  for (size_t i = 0; i < tokens_.size(); ++i) trie_.insert(tokens_[i].content, static_cast<int32_t>(i));
}

std::vector<Fragment> ControlTokens::find(std::string_view text, bool parse_special) const {
  // One walk finds the tokens that occur at all: some vocabularies have thousands, and a search for each would cost
  // that much.
  std::vector<int32_t> present;
  for (size_t pos = 0; pos < text.size(); ++pos) {
    int32_t node = 0;
    for (size_t i = pos; i < text.size(); ++i) {
      node = trie_.step(node, text[i]);
      if (node == Trie::kNone) break;
      if (trie_.value(node) != Trie::kNone) present.push_back(trie_.value(node));
    }
  }
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());

  const auto is_space = [&](size_t at) { return std::isspace(static_cast<unsigned char>(text[at])) != 0; };
  std::vector<Fragment> fragments;
  if (!text.empty()) fragments.push_back({0, text.size(), -1});
  for (const int32_t index : present) {
    const ControlToken& token = tokens_[static_cast<size_t>(index)];
    if (token.special && !parse_special) continue;
    std::vector<Fragment> next;
    for (const Fragment& fragment : fragments) {
      if (fragment.id >= 0) {
        next.push_back(fragment);
        continue;
      }
      size_t start = fragment.start;
      const size_t end = fragment.start + fragment.size;
      for (size_t at; start < end && (at = text.substr(0, end).find(token.content, start)) != std::string_view::npos;) {
        size_t left = at;
        while (token.lstrip && left > start && is_space(left - 1)) --left;
        if (left > start) next.push_back({start, left - start, -1});
        next.push_back({at, token.content.size(), token.id});
        start = at + token.content.size();
        while (token.rstrip && start < end && is_space(start)) ++start;
      }
      if (start < end) next.push_back({start, end - start, -1});
    }
    fragments = std::move(next);
  }
  return fragments;
}

}  // namespace rlx::text
