// Regular expressions of tokenizers, on PCRE2. Patterns are written for Oniguruma; what PCRE2 reads differently is
// translated.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text {

struct Match {
  size_t start = 0, end = 0;
};

class Regex {
 public:
  explicit Regex(std::string_view pattern);

  // All matches in valid UTF-8, from left to right, empty ones too. Where a search needs more steps or memory than
  // PCRE2's limits allow, the rest of the text has no match.
  std::vector<Match> matches(std::string_view text) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

// The pattern that matches this text and nothing else.
std::string escape_regex(std::string_view text);

// A pattern in PCRE2's syntax: \s, \w, \b and \u as Oniguruma means them, classes in classes flattened.
std::string to_pcre2(std::string_view pattern);

}  // namespace rlx::text
