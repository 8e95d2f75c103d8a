#include "rlx/error.h"
#include "text/model.h"
#include "text/trie.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

class WordPiece : public Model {
 public:
  WordPiece(const Vocabulary& vocabulary, WordPieceOptions options) : options_(std::move(options)) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view piece = vocabulary.piece(id);
      if (piece.empty() || vocabulary.find(piece) != id) continue;
      start_.insert(piece, id);
      if (piece.starts_with(options_.prefix) && piece.size() > options_.prefix.size())
        inside_.insert(piece.substr(options_.prefix.size()), id);
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    const std::string marked = options_.mark + std::string(word);
    std::string_view rest = marked;
    bool known = characters(word) <= options_.max_characters;
    while (known && !rest.empty()) {
      const Trie::Found found = (rest.size() == marked.size() ? start_ : inside_).longest(rest);
      known = found.size > 0;
      rest.remove_prefix(found.size);
      if (known) ids.push_back(found.value);
    }
    if (known) return;
    ids.resize(before);
    require(options_.unk >= 0, "The text has a word without tokens, and the vocabulary has no unknown token.");
    ids.push_back(options_.unk);
  }

 private:
  static int64_t characters(std::string_view word) {
    int64_t count = 0;
    for (const char c : word) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
    return count;
  }

  WordPieceOptions options_;
  Trie start_, inside_;
};

class WordLevel : public Model {
 public:
  WordLevel(const Vocabulary& vocabulary, int32_t unk) : vocabulary_(vocabulary), unk_(unk) {}

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const auto id = vocabulary_.find(word);
    require(id || unk_ >= 0, "The text has a word without a token, and the vocabulary has no unknown token.");
    ids.push_back(id.value_or(unk_));
  }

 private:
  const Vocabulary& vocabulary_;
  int32_t unk_;
};

}  // namespace

std::unique_ptr<Model> make_word_piece(const Vocabulary& vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPiece>(vocabulary, std::move(options));
}

std::unique_ptr<Model> make_word_level(const Vocabulary& vocabulary, int32_t unk) {
  return std::make_unique<WordLevel>(vocabulary, unk);
}

}  // namespace rlx::text
