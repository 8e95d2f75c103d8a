// Turns a word into ids. Each kind of vocabulary has its own way; none of them knows files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace rlx::text {

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of a word. The word is valid UTF-8, except for score_bpe, which takes any bytes.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
};

// Byte-pair encoding with ranked merges (GPT-2 and after).
struct BpeOptions {
  std::string unk;             // the piece for characters without one; empty: they vanish
  std::string prefix, suffix;  // of pieces inside and at the end of a word
  bool fuse_unk = false;
  bool byte_fallback = false;  // characters without a piece are written with <0x0A>-like pieces
  bool ignore_merges = false;  // a word that is a piece is that piece
  bool lenient = false;  // llama.cpp's: merges may name strings that are no pieces, which are written byte by byte
};
using Merges = std::vector<std::pair<std::string, std::string>>;  // best first
std::unique_ptr<Model> make_bpe(const Vocabulary& vocabulary, const Merges& merges, BpeOptions options);

// SentencePiece's BPE as llama.cpp has it: of two neighbours that form a piece, the pair with the best score is joined
// first.
std::unique_ptr<Model> make_score_bpe(const Vocabulary& vocabulary, std::vector<float> scores, int32_t unk);

// SentencePiece's unigram: the sequence of pieces with the largest sum of scores.
struct UnigramOptions {
  int32_t unk = -1;
  double unk_score = 0;  // of a character without a piece
  bool byte_fallback = false;
  bool keep_fused_unk = false;  // llama.cpp's: a run of unknown characters is unk even where it is a piece
};
struct ScoredPiece {
  std::string piece;
  int32_t id = 0;
  double score = 0;
};
std::unique_ptr<Model> make_unigram(const Vocabulary& vocabulary, const std::vector<ScoredPiece>& pieces,
                                    UnigramOptions options);

// BERT's WordPiece: the longest piece first. `prefix` marks pieces inside a word (##), `mark` is put before a word
// (llama.cpp's ▁).
struct WordPieceOptions {
  int32_t unk = -1;
  std::string prefix = "##", mark;
  int64_t max_characters = 100;  // longer words are unk
};
std::unique_ptr<Model> make_word_piece(const Vocabulary& vocabulary, WordPieceOptions options);

std::unique_ptr<Model> make_word_level(const Vocabulary& vocabulary, int32_t unk);

}  // namespace rlx::text
