// UTF-8 and the properties of characters, over utf8proc's tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::text {

constexpr char32_t kReplacement = 0xFFFD;

// The character at the start of text. What is not UTF-8 is U+FFFD with `size` bytes to skip: the longest start of a
// character, as Python and Rust replace it.
struct Character {
  char32_t code = kReplacement;
  uint8_t size = 1;
  bool valid = false;
};
Character first_character(std::string_view text);

// Walks over valid UTF-8: the character at `pos`, which moves behind it.
inline char32_t next_character(std::string_view text, size_t& pos) {
  const Character c = first_character(text.substr(pos));
  pos += c.size;
  return c.code;
}

// The bytes of a character that starts with this byte; 1 for a byte that starts none.
size_t utf8_size(char lead);

void append_utf8(std::string& out, char32_t code);
std::string to_utf8(char32_t code);
bool is_valid_utf8(std::string_view text);

enum class Invalid { kPerCharacter, kPerByte };  // one U+FFFD for each start of a character, or for each byte
std::string to_valid_utf8(std::string_view text, Invalid rule = Invalid::kPerCharacter);

bool is_white_space(char32_t c);      // Unicode's White_Space
bool is_numeric(char32_t c);          // N*
bool is_punctuation(char32_t c);      // P* or ASCII punctuation: what BERT splits at
bool is_other(char32_t c);            // C*, assigned: control, format, private
bool is_letter(char32_t c);           // L*
bool is_mark(char32_t c);             // M*
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_cjk_ideograph(char32_t c);    // BERT's list

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, Form form);
std::string lower(std::string_view text);
std::string upper(std::string_view text);

std::string_view strip_left(std::string_view text);  // white space of Unicode
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// The start of a text for a message: at most `most` bytes, whole characters.
std::string excerpt(std::string_view text, size_t most = 60);

// Bytes that the extended grapheme cluster at the start of text has.
size_t grapheme_size(std::string_view text);

}  // namespace rlx::text
