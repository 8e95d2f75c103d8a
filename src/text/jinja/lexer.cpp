#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "rlx/error.h"
#include "text/unicode.h"

namespace rlx::jinja {

void fail_at(int line, std::string_view message) {
  fail(ErrorKind::kInvalid, str("Line ", line, " of the chat template: ", message));
}

namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) {
    // Every kind of line end is \n; the last one is no part of the template.
    source_ = text::replace_all(text::replace_all(source, "\r\n", "\n"), "\r", "\n");
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<Token> run() {
    while (pos_ < source_.size()) text_and_tag();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(size_t to) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<ptrdiff_t>(pos_), source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    line_starting_ = to > pos_ ? source_[to - 1] == '\n' : line_starting_;
    pos_ = to;
  }

  bool at(std::string_view text) const { return std::string_view(source_).substr(pos_, text.size()) == text; }

  // Text before a tag: "-" takes its white space away, and so does the tag at the start of a line, unless "+" keeps it.
  void add_text(std::string_view text, char sign, bool strips_line) {
    if (sign == '-') {
      text = text::strip_right(text);
    } else if (sign != '+' && strips_line) {
      const size_t line = text.rfind('\n') + 1;  // 0 without one
      if ((line > 0 || line_starting_) && text::strip(text.substr(line)).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::kText, std::string(text));
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
  }

  void text_and_tag() {
    size_t tag = pos_;
    while ((tag = source_.find('{', tag)) != std::string::npos) {
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    const std::string_view all = source_;
    if (tag == std::string::npos) {
      add(TokenKind::kText, std::string(all.substr(pos_)));
      advance(source_.size());
      return;
    }
    const char kind = source_[tag + 1], sign = sign_at(tag + 2);
    add_text(all.substr(pos_, tag - pos_), sign, kind != '{');
    advance(tag + (sign == ' ' ? 2 : 3));
    line_starting_ = false;
    if (kind == '#') {
      const size_t end = source_.find("#}", pos_);
      if (end == std::string::npos) fail_at(line_, "A comment has no end.");
      const char end_sign = end > pos_ ? sign_at(end - 1) : ' ';
      advance(end + 2);
      after_block(end_sign);
    } else if (kind == '%' && raw_block()) {
      return;
    } else {
      expression(kind == '{');
    }
  }

  void after_block(char sign) {
    if (sign == '-')
      skip_space();
    else if (sign == ' ' && pos_ < source_.size() && source_[pos_] == '\n')
      advance(pos_ + 1);
  }

  void skip_space() {
    const std::string_view rest = std::string_view(source_).substr(pos_);
    advance(pos_ + rest.size() - text::strip_left(rest).size());
  }

  // {% raw %} … {% endraw %}: text, whatever stands in it.
  bool raw_block() {
    size_t p = pos_;
    const auto space = [&] {
      while (p < source_.size() && (source_[p] == ' ' || source_[p] == '\n' || source_[p] == '\t')) ++p;
    };
    const auto word = [&](std::string_view w) {
      space();
      if (std::string_view(source_).substr(p, w.size()) != w) return false;
      p += w.size();
      space();
      return true;
    };
    if (!word("raw")) return false;
    const char sign = sign_at(p);
    if (std::string_view(source_).substr(sign == ' ' ? p : p + 1, 2) != "%}") return false;
    advance(p + (sign == ' ' ? 2 : 3));
    if (sign == '-') skip_space();
    for (size_t tag = pos_; (tag = source_.find("{%", tag)) != std::string::npos; ++tag) {
      const char begin_sign = sign_at(tag + 2);
      p = tag + (begin_sign == ' ' ? 2 : 3);
      if (!word("endraw")) continue;
      const char end_sign = sign_at(p);
      if (end_sign != ' ') ++p;
      if (std::string_view(source_).substr(p, 2) != "%}") continue;
      add_text(std::string_view(source_).substr(pos_, tag - pos_), begin_sign, true);
      advance(p + 2);
      line_starting_ = false;
      after_block(end_sign);
      return true;
    }
    fail_at(line_, "A raw block has no end.");
  }

  void expression(bool output) {
    const std::string_view end = output ? "}}" : "%}";
    const int start_line = line_;
    std::string open;  // brackets: inside them }} closes braces
    add(output ? TokenKind::kOutputStart : TokenKind::kBlockStart, "");
    while (true) {
      skip_space();
      if (pos_ >= source_.size()) fail_at(start_line, "A tag has no end.");
      const char sign = sign_at(pos_);
      if (open.empty() && std::string_view(source_).substr(pos_ + (sign == ' ' ? 0 : 1), 2) == end &&
          !(output && sign == '+')) {
        add(output ? TokenKind::kOutputEnd : TokenKind::kBlockEnd, "");
        advance(pos_ + (sign == ' ' ? 2 : 3));
        if (!output)
          after_block(sign);
        else if (sign == '-')
          skip_space();
        return;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[pos_];
    size_t end = pos_;
    if (is_name_start(c)) {
      while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
      add(TokenKind::kName, source_.substr(pos_, end - pos_));
      return advance(end);
    }
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    static constexpr std::array<std::string_view, 26> kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                                                    "/",  "%",  "~",  "(",  ")",  "[",  "]", "{", "}",
                                                                    ">",  "<",  "=",  ",",  ".",  ":",  "|", ";"};
    const auto found = std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view op) { return at(op); });
    if (found == kOperators.end())
      fail_at(line_, str("The character '", std::string_view(source_).substr(pos_, text::utf8_size(c)),
                         "' means nothing here."));
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != opener) fail_at(line_, str("The bracket '", c, "' closes none."));
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found));
    advance(pos_ + found->size());
  }

  void number() {
    size_t end = pos_;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) ||
                                      (source_[end] == '_' && end + 1 < source_.size() && is_digit(source_[end + 1]))))
        ++end;
    };
    digits();
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '-' || source_[exponent] == '+')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    std::string text = source_.substr(pos_, end - pos_);
    std::erase(text, '_');
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    advance(end);
  }

  void string(char quote) {
    const int start_line = line_;
    std::string text;
    size_t p = pos_ + 1;
    for (; p < source_.size() && source_[p] != quote; ++p) {
      if (source_[p] != '\\') {
        text += source_[p];
        continue;
      }
      if (++p >= source_.size()) break;
      escape(p, text);
    }
    if (p >= source_.size()) fail_at(start_line, "A string has no end.");
    add(TokenKind::kString, std::move(text));
    advance(p + 1);
  }

  // Python's escapes; `p` is at the letter and stays at the last character of the escape.
  void escape(size_t& p, std::string& out) const {
    static constexpr std::string_view kLetters = "nrtbfav0\\'\"", kMeanings("\n\r\t\b\f\a\v\0\\'\"", 11);
    const char letter = source_[p];
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (digits > 0) {
      char32_t code = 0;
      for (size_t i = 0; i < digits; ++i) {
        const char c = ++p < source_.size() ? source_[p] : ' ';
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) fail_at(line_, "A string has an escape with too few digits.");
        code = code << 4 | static_cast<char32_t>(digit);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        fail_at(line_, "A string has an escape that is no character.");
      text::append_utf8(out, code);
    } else if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
      out += kMeanings[at];
    } else if (letter != '\n') {  // an escaped line end is nothing
      (out += '\\') += letter;
    }
  }

  std::string source_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace rlx::jinja
