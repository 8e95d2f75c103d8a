// GPT-2's spelling of bytes as visible characters: byte-level tokenizers write their vocabulary with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::text {

// The bytes of text, each as its character (a space is Ġ).
std::string bytes_as_characters(std::string_view text);

// The byte that a character stands for, or -1.
int byte_of_character(char32_t c);

// A piece of a byte-level vocabulary as the bytes that it stands for; as it is, where it has other characters.
std::string characters_as_bytes(std::string_view piece);

// <0x0A>: the piece for a byte that SentencePiece's vocabulary spells so, and the byte of a piece, or -1.
std::string byte_piece(uint8_t byte);
int byte_of_piece(std::string_view piece);

}  // namespace rlx::text
