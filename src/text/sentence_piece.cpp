#include <algorithm>
#include <limits>
#include <queue>

#include "rlx/error.h"
#include "text/byte_level.h"
#include "text/model.h"
#include "text/trie.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

// Appends the pieces of text's bytes; false, and nothing, where one is missing.
bool append_byte_pieces(const Vocabulary& vocabulary, std::string_view text, std::vector<int32_t>& ids) {
  const size_t before = ids.size();
  for (const char c : text) {
    const auto id = vocabulary.find(byte_piece(static_cast<uint8_t>(c)));
    if (!id) {
      ids.resize(before);
      return false;
    }
    ids.push_back(*id);
  }
  return true;
}

struct Symbol {
  int32_t previous = -1, next = -1;
  uint32_t start = 0, size = 0;  // size 0 once it is merged away
};

struct Candidate {
  float score = 0;
  int32_t left = 0, right = 0;
  uint32_t size = 0;  // of both together: they have changed when it differs
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

class ScoreBpe : public Model {
 public:
  ScoreBpe(const Vocabulary& vocabulary, std::vector<float> scores, int32_t unk)
      : vocabulary_(vocabulary), scores_(std::move(scores)), unk_(unk) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) longest_ = std::max(longest_, vocabulary.piece(id).size());
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    std::vector<Symbol> symbols;
    for (size_t pos = 0; pos < word.size();) {
      const size_t size =
          std::min(utf8_size(word[pos]), word.size() - pos);  // any bytes: what is no piece is written as bytes
      const auto index = static_cast<int32_t>(symbols.size());
      if (index > 0) symbols.back().next = index;
      symbols.push_back({index - 1, -1, static_cast<uint32_t>(pos), static_cast<uint32_t>(size)});
      pos += size;
    }
    merge_all(word, symbols);
    for (const Symbol& s : symbols) {
      if (s.size == 0) continue;
      const std::string_view text = word.substr(s.start, s.size);
      if (const auto id = vocabulary_.find(text))
        ids.push_back(*id);
      else if (!append_byte_pieces(vocabulary_, text, ids) && unk_ >= 0)
        ids.push_back(unk_);
    }
  }

 private:
  void merge_all(std::string_view word, std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate> queue;
    const auto offer = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol& a = symbols[static_cast<size_t>(left)];
      const uint32_t size = a.size + symbols[static_cast<size_t>(right)].size;
      if (size > longest_) return;
      const auto id = vocabulary_.find(word.substr(a.start, size));
      if (id) queue.push({scores_[static_cast<size_t>(*id)], left, right, size});
    };
    for (size_t i = 1; i < symbols.size(); ++i) offer(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(best.left)];
      Symbol& right = symbols[static_cast<size_t>(best.right)];
      if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
      left.size += right.size;
      right.size = 0;
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = best.left;
      offer(left.previous, best.left);
      offer(best.left, left.next);
    }
  }

  const Vocabulary& vocabulary_;
  std::vector<float> scores_;
  int32_t unk_;
  size_t longest_ = 0;
};

class Unigram : public Model {
 public:
  Unigram(const Vocabulary& vocabulary, const std::vector<ScoredPiece>& pieces, UnigramOptions options)
      : vocabulary_(vocabulary), options_(options), scores_(static_cast<size_t>(vocabulary.size())) {
    for (const ScoredPiece& p : pieces) {
      if (p.piece.empty()) continue;
      trie_.insert(p.piece, p.id);
      scores_[static_cast<size_t>(p.id)] = p.score;
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    struct Best {
      double score = -std::numeric_limits<double>::max();
      int32_t id = -1;
      uint32_t start = 0;
      bool reached = false;
    };
    std::vector<Best> best(word.size() + 1);
    best[0].score = 0;
    const auto offer = [&](size_t start, size_t end, int32_t id, double score) {
      Best& b = best[end];
      if (b.reached && !(score > b.score)) return;
      b = {score, id, static_cast<uint32_t>(start), true};
    };
    for (size_t start = 0; start < word.size();) {
      const size_t character = std::min<size_t>(first_character(word.substr(start)).size, word.size() - start);
      bool has_piece = false;
      int32_t node = 0;
      for (size_t end = start; end < word.size();) {
        node = trie_.step(node, word[end++]);
        if (node == Trie::kNone) break;
        const int32_t id = trie_.value(node);
        if (id == Trie::kNone) continue;
        offer(start, end, id, best[start].score + scores_[static_cast<size_t>(id)]);
        has_piece |= end - start == character;
      }
      if (!has_piece) {
        require(options_.unk >= 0,
                "The text has a character without a token, and the vocabulary has no unknown token.");
        offer(start, start + character, options_.unk, best[start].score + options_.unk_score);
      }
      start += character;
    }
    write(word, best, ids);
  }

 private:
  template <class Best>
  void write(std::string_view word, const std::vector<Best>& best, std::vector<int32_t>& ids) const {
    std::vector<std::pair<size_t, size_t>> pieces;  // from the end to the start; a run of unknown characters is one
    std::vector<int32_t> piece_ids;
    for (size_t end = word.size(); end > 0;) {
      const Best& b = best[end];
      if (!piece_ids.empty() && b.id == options_.unk && piece_ids.back() == options_.unk) {
        pieces.back().first = b.start;
      } else {
        pieces.push_back({b.start, end});
        piece_ids.push_back(b.id);
      }
      end = b.start;
    }
    for (size_t i = pieces.size(); i-- > 0;) {
      const std::string_view text = word.substr(pieces[i].first, pieces[i].second - pieces[i].first);
      if (piece_ids[i] != options_.unk) {
        ids.push_back(piece_ids[i]);
      } else if (const auto id = vocabulary_.find(text); id && !options_.keep_fused_unk) {
        ids.push_back(*id);
      } else if (!options_.byte_fallback || !append_byte_pieces(vocabulary_, text, ids)) {
        ids.push_back(options_.unk);
      }
    }
  }

  const Vocabulary& vocabulary_;
  UnigramOptions options_;
  Trie trie_;
  std::vector<double> scores_;
};

}  // namespace

std::unique_ptr<Model> make_score_bpe(const Vocabulary& vocabulary, std::vector<float> scores, int32_t unk) {
  return std::make_unique<ScoreBpe>(vocabulary, std::move(scores), unk);
}

std::unique_ptr<Model> make_unigram(const Vocabulary& vocabulary, const std::vector<ScoredPiece>& pieces,
                                    UnigramOptions options) {
  return std::make_unique<Unigram>(vocabulary, pieces, options);
}

}  // namespace rlx::text
