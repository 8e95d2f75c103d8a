#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::text {

struct Regex::Code {
  pcre2_code* code = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

std::string escape_regex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\.+*?()|[]{}^$#&-~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Oniguruma's \w: it counts the numbers of Latin-1 (², ½) in, and no others.
#define RLX_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

// What a backslash and the letter after it are in PCRE2; empty where they are the same.
static std::string_view escape_in_pcre2(char letter, bool in_class) {
  switch (letter) {
    case 's': return "\\p{White_Space}";  // PCRE2's own adds U+180E
    case 'S': return "\\P{White_Space}";
    case 'w': return in_class ? RLX_WORD : "[" RLX_WORD "]";
    case 'W': return in_class ? "" : "[^" RLX_WORD "]";
    case 'b': return in_class ? "" : "(?:(?<=[" RLX_WORD "])(?![" RLX_WORD "])|(?<![" RLX_WORD "])(?=[" RLX_WORD "]))";
    case 'B': return in_class ? "" : "(?:(?<=[" RLX_WORD "])(?=[" RLX_WORD "])|(?<![" RLX_WORD "])(?![" RLX_WORD "]))";
    default: return "";
  }
}

std::string to_pcre2(std::string_view pattern) {
  std::string out;
  int depth = 0;  // of brackets
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char letter = pattern[++i];
      if (letter == 'u' && i + 4 < pattern.size() && pattern[i + 1] != '{') {
        out += str("\\x{", pattern.substr(i + 1, 4), "}");
        i += 4;
      } else if (const std::string_view same = escape_in_pcre2(letter, depth > 0); !same.empty()) {
        out += same;
      } else {
        out += c;
        out += letter;
      }
    } else if (c == '[' && depth > 0 && pattern.substr(i, 2) != "[:") {
      if (pattern.substr(i, 2) == "[^")
        fail(ErrorKind::kUnsupported, "A regular expression has a negated class inside a class.");
      ++depth;  // a union: its members join the outer class
    } else if (c == '[') {
      if (depth > 0) {  // [:name:] stays as it is
        const size_t end = pattern.find(":]", i);
        if (end == std::string_view::npos)
          fail(ErrorKind::kInvalid, "A regular expression has a class name without its end.");
        out += pattern.substr(i, end + 2 - i);
        i = end + 1;
        continue;
      }
      ++depth;
      out += c;
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += "\\]", ++i;
    } else if (c == ']' && depth > 0) {
      if (--depth == 0) out += c;
    } else if (c == '&' && depth > 0 && pattern.substr(i, 2) == "&&") {
      fail(ErrorKind::kUnsupported, "A regular expression intersects classes (&&).");
    } else {
      out += c;
    }
  }
  return out;
}

Regex::Regex(std::string_view pattern) {
  require(is_valid_utf8(pattern), "A regular expression is not UTF-8.");
  const std::string translated = to_pcre2(pattern);
  int error = 0;
  size_t offset = 0;
  auto code = std::make_shared<Code>();
  // Ruby's syntax, which Hugging Face's tokenizers use: ^ and $ match at every line.
  code->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code->code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    fail(ErrorKind::kInvalid, str("The regular expression '", excerpt(pattern, 200),
                                  "' is not valid: ", reinterpret_cast<const char*>(message), "."));
  }
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);  // where it fails, matching interprets
  code_ = std::move(code);
}

std::vector<Match> Regex::matches(std::string_view text) const {
  std::vector<Match> found;
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  if (data == nullptr || context == nullptr)
    fail(ErrorKind::kMemory, "There is no memory left for a regular expression.");
  pcre2_set_heap_limit(context.get(), 64 << 10);    // KiB
  pcre2_set_match_limit(context.get(), 2'000'000);  // steps of one search: a fraction of a second
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t pos = 0, last_end = std::string_view::npos;
  while (pos <= text.size()) {
    // The text was checked once: another check for each match would make long texts quadratic.
    int rc = pcre2_match(code_->code, subject, text.size(), pos, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = pcre2_match(code_->code, subject, text.size(), pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                       context.get());
    if (rc < 0) break;
    const size_t* bounds = pcre2_get_ovector_pointer(data.get());
    const Match match{bounds[0], bounds[1]};
    if (match.start < pos || match.end < match.start) break;  // \K may move the start: no such pattern splits text
    if (match.end == match.start) {
      pos = match.end + (match.end < text.size() ? utf8_size(text[match.end]) : 1);
      if (match.end == last_end) continue;  // nothing, right behind a match, is none
    } else {
      pos = match.end;
    }
    last_end = match.end;
    found.push_back(match);
  }
  return found;
}

}  // namespace rlx::text
