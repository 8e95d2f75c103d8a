// A template's source as tokens: text, and what stands in {{ }} and {% %}. White space is trimmed as Hugging Face sets
// Jinja up: trim_blocks, lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx::jinja {

enum class TokenKind {
  kText,
  kOutputStart,
  kOutputEnd,
  kBlockStart,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string: what it stands for
  int line = 0;
};

std::vector<Token> lex(std::string_view source);

// Throws one sentence that names the line.
[[noreturn]] void fail_at(int line, std::string_view message);

}  // namespace rlx::jinja
