#include "text/byte_level.h"

#include "text/unicode.h"

namespace rlx::text {
namespace {

struct Table {
  std::array<std::string, 256> character;
  std::array<int16_t, 512> byte;

  Table() {
    byte.fill(-1);
    char32_t next = 256;  // characters for bytes that are not visible ones of Latin-1, in order
    for (int b = 0; b < 256; ++b) {
      const bool visible = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = visible ? static_cast<char32_t>(b) : next++;
      character[static_cast<size_t>(b)] = to_utf8(c);
      byte[c] = static_cast<int16_t>(b);
    }
  }
};

const Table& table() {
  static const Table kTable;
  return kTable;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string bytes_as_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) out += table().character[static_cast<uint8_t>(c)];
  return out;
}

int byte_of_character(char32_t c) { return c < 512 ? table().byte[c] : -1; }

std::string characters_as_bytes(std::string_view piece) {
  std::string out;
  for (size_t pos = 0; pos < piece.size();) {
    const int byte = byte_of_character(next_character(piece, pos));
    if (byte < 0) return std::string(piece);
    out += static_cast<char>(byte);
  }
  return out;
}

std::string byte_piece(uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const int high = hex_digit(piece[3]), low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace rlx::text
