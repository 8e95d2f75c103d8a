#include <algorithm>
#include <queue>
#include <unordered_map>

#include "rlx/error.h"
#include "text/byte_level.h"
#include "text/model.h"
#include "text/unicode.h"

namespace rlx::text {
namespace {

struct Merge {
  int32_t rank = 0, result = 0;
};

struct MixPair {
  size_t operator()(uint64_t pair) const {
    pair *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(pair ^ pair >> 32);
  }
};

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

struct Symbol {
  int32_t id = -1;  // -1: no piece and in no merge
  int32_t previous = -1, next = -1;
  uint32_t start = 0, size = 0;  // where it stands in the word; size 0 once it is merged away
};

struct Candidate {
  uint64_t order = 0;  // rank, then place: the smallest first
  int32_t result = 0;
  bool operator<(const Candidate& other) const {
    return order > other.order;
  }  // std::priority_queue has the largest first
};

class Bpe : public Model {
 public:
  Bpe(const Vocabulary& vocabulary, const Merges& merges, BpeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {
    if (!options_.unk.empty()) unk_ = vocabulary.find(options_.unk).value_or(-1);
    merges_.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const auto& [left, right] = merges[rank];
      std::string_view tail = right;
      if (!options_.prefix.empty() && tail.starts_with(options_.prefix)) tail.remove_prefix(options_.prefix.size());
      const int32_t l = symbol(left), r = symbol(right), both = symbol(str(left, tail));
      const Merge merge{static_cast<int32_t>(rank), both};
      if (options_.lenient)
        merges_.emplace(pair_of(l, r), merge);  // the first of equal merges wins there, the last in Hugging Face's
      else
        merges_.insert_or_assign(pair_of(l, r), merge);
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (const auto id = vocabulary_.find(word)) {
        ids.push_back(*id);
        return;
      }
    }
    std::vector<Symbol> symbols = options_.lenient ? plain_symbols(word) : first_symbols(word);
    merge_all(symbols);
    for (const Symbol& s : symbols) {
      if (s.size == 0) continue;
      if (s.id >= 0 && s.id < vocabulary_.size())
        ids.push_back(s.id);
      else
        append_bytes(word.substr(s.start, s.size), ids);
    }
  }

 private:
  // The id of a string in merges: its piece's, or one above the vocabulary's where that is allowed.
  int32_t symbol(std::string_view text) {
    if (const auto id = vocabulary_.find(text)) return *id;
    if (!options_.lenient)
      fail(ErrorKind::kInvalid,
           str("The merges need the token '", excerpt(text), "', which the vocabulary does not have."));
    const auto [entry, added] =
        extra_.try_emplace(std::string(text), vocabulary_.size() + static_cast<int32_t>(extra_.size()));
    return entry->second;
  }

  std::vector<Symbol> plain_symbols(std::string_view word) const {
    std::vector<Symbol> symbols;
    for (size_t pos = 0; pos < word.size();) {
      const size_t start = pos;
      next_character(word, pos);
      const std::string_view text = word.substr(start, pos - start);
      int32_t id = vocabulary_.find(text).value_or(-1);
      if (id < 0)
        if (const auto extra = extra_.find(text); extra != extra_.end()) id = extra->second;
      add(symbols, id, start, text.size());
    }
    return symbols;
  }

  std::vector<Symbol> first_symbols(std::string_view word) const {
    std::vector<Symbol> symbols;
    size_t unk_start = 0, unk_size = 0;  // an unknown character that waits: others may join it
    const auto flush_unk = [&] {
      if (unk_size > 0) add(symbols, unk_, unk_start, unk_size);
      unk_size = 0;
    };
    std::string decorated;
    for (size_t pos = 0; pos < word.size();) {
      const size_t start = pos;
      next_character(word, pos);
      std::string_view text = word.substr(start, pos - start);
      if ((start > 0 && !options_.prefix.empty()) || (pos == word.size() && !options_.suffix.empty())) {
        decorated = str(start > 0 ? options_.prefix : "", text, pos == word.size() ? options_.suffix : "");
        text = decorated;
      }
      if (const auto id = vocabulary_.find(text)) {
        flush_unk();
        add(symbols, *id, start, pos - start);
      } else if (options_.byte_fallback && add_bytes(symbols, text, start)) {
        continue;
      } else if (!options_.unk.empty()) {
        require(unk_ >= 0, "The unknown token '", options_.unk, "' is not in the vocabulary.");
        if (!options_.fuse_unk) flush_unk();
        if (unk_size == 0) unk_start = start;
        unk_size += pos - start;
      }
    }
    flush_unk();
    return symbols;
  }

  static void add(std::vector<Symbol>& symbols, int32_t id, size_t start, size_t size) {
    const auto index = static_cast<int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({id, index - 1, -1, static_cast<uint32_t>(start), static_cast<uint32_t>(size)});
  }

  bool add_bytes(std::vector<Symbol>& symbols, std::string_view text, size_t start) const {
    std::vector<int32_t> ids;
    for (const char c : text) {
      const auto id = vocabulary_.find(byte_piece(static_cast<uint8_t>(c)));
      if (!id) return false;
      ids.push_back(*id);
    }
    for (size_t i = 0; i < ids.size(); ++i) add(symbols, ids[i], start + i, 1);
    return true;
  }

  void append_bytes(std::string_view text, std::vector<int32_t>& ids) const {
    for (const char c : text) {
      const auto id =
          options_.byte_fallback ? vocabulary_.find(byte_piece(static_cast<uint8_t>(c))) : vocabulary_.find({&c, 1});
      if (id) ids.push_back(*id);
    }
  }

  // Each merge looks at its two neighbours alone and the queue has each pair once: n log n, for words of any length.
  void merge_all(std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate> queue;
    const auto offer = [&](int32_t left) {
      if (left < 0 || symbols[static_cast<size_t>(left)].next < 0) return;
      const Symbol& a = symbols[static_cast<size_t>(left)];
      const Merge* merge = find(a.id, symbols[static_cast<size_t>(a.next)].id);
      if (merge != nullptr)
        queue.push({static_cast<uint64_t>(merge->rank) << 32 | static_cast<uint32_t>(left), merge->result});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<int32_t>(i));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      const auto at = static_cast<int32_t>(best.order & 0xFFFFFFFF);
      Symbol& left = symbols[static_cast<size_t>(at)];
      if (left.size == 0 || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      const Merge* merge = find(left.id, right.id);
      if (merge == nullptr || merge->result != best.result) continue;  // a neighbour has changed since
      left.id = best.result;
      left.size += right.size;
      right.size = 0;
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = at;
      offer(left.previous);
      offer(at);
    }
  }

  const Merge* find(int32_t left, int32_t right) const {
    if (left < 0 || right < 0) return nullptr;
    const auto found = merges_.find(pair_of(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  int32_t unk_ = -1;
  std::unordered_map<uint64_t, Merge, MixPair> merges_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> extra_;
};

}  // namespace

std::unique_ptr<Model> make_bpe(const Vocabulary& vocabulary, const Merges& merges, BpeOptions options) {
  return std::make_unique<Bpe>(vocabulary, merges, std::move(options));
}

}  // namespace rlx::text
