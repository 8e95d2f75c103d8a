#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "rlx/error.h"

namespace rlx::text {

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {};
  // The second byte of E0, ED, F0 and F4 has a smaller range: no long forms, no surrogates, nothing past U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code = lead & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    const uint8_t b = byte(i);
    if (b < (i == 1 ? low : 0x80) || b > (i == 1 ? high : 0xBF)) return {kReplacement, static_cast<uint8_t>(i), false};
    code = code << 6 | (b & 0x3F);
  }
  return {code, static_cast<uint8_t>(size), true};
}

size_t utf8_size(char lead) {
  const auto b = static_cast<uint8_t>(lead);
  return b < 0xC0 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& out, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string to_utf8(char32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const Character c = first_character(text.substr(pos));
    if (!c.valid) return false;
    pos += c.size;
  }
  return true;
}

std::string to_valid_utf8(std::string_view text, Invalid rule) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Character c = first_character(text.substr(pos));
    const size_t size = c.valid || rule == Invalid::kPerCharacter ? c.size : 1;
    if (c.valid)
      out += text.substr(pos, size);
    else
      out += "\xEF\xBF\xBD";
    pos += size;
  }
  return out;
}

static utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool is_other(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO ||
         k == UTF8PROC_CATEGORY_CS;
}

bool is_letter(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_mark(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_cjk_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) ||  // from 0x2B920, not 0x2B820: so do Hugging Face and llama.cpp
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string normalize(std::string_view text, Form form) {
  int options = UTF8PROC_STABLE;
  options |= form == Form::kNfc || form == Form::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::kNfkc || form == Form::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (size < 0) fail(ErrorKind::kInvalid, str("Text cannot be normalized: ", utf8proc_errmsg(size), "."));
  return {reinterpret_cast<const char*>(result), static_cast<size_t>(size)};
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_character(text, pos);
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    if (c == 0x130) append_utf8(out, 0x307);  // the one character whose lower case has two: utf8proc gives its first
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = next_character(text, pos);
    if (c == 0xDF)
      out += "SS";
    else
      append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!c.valid || !is_white_space(c.code)) break;
    text.remove_prefix(c.size);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
    const Character c = first_character(text.substr(start));
    if (!c.valid || !is_white_space(c.code)) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  size_t start = 0;
  for (size_t at; (at = text.find(from, start)) != std::string_view::npos; start = at + from.size()) {
    out += text.substr(start, at - start);
    out += to;
  }
  return out += text.substr(start);
}

std::string excerpt(std::string_view text, size_t most) {
  size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return to_valid_utf8(text.substr(0, end));
}

size_t grapheme_size(std::string_view text) {
  size_t pos = 0;
  if (text.empty()) return 0;
  char32_t last = next_character(text, pos);
  utf8proc_int32_t state = 0;
  while (pos < text.size()) {
    size_t end = pos;
    const char32_t next = next_character(text, end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last), static_cast<utf8proc_int32_t>(next),
                                         &state))
      break;
    last = next;
    pos = end;
  }
  return pos;
}

}  // namespace rlx::text
