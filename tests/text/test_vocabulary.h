// Small vocabularies for tests.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace rlx::test {

// Byte-level BPE with every byte, some merges and special tokens, as a tokenizer.json.
std::string byte_level_json();

// SentencePiece's BPE: letters, a few words, pieces for all bytes.
GgufVocabulary sentence_piece_vocabulary();

// Byte-level BPE with every byte.
GgufVocabulary byte_level_vocabulary();

}  // namespace rlx::test
