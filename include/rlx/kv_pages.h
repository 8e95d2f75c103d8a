// Which pages of a KV cache's pool belong to which sequence (spec 20, 5): what fills the tables of ops::paged_attention
// and ops::paged_kv_append. Knows no device; not safe from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "rlx/tensor.h"

namespace rlx {

class KvPages {
 public:
  using Sequence = int64_t;  // a number that is never used again

  KvPages(int64_t pages, int64_t tokens_per_page);

  Sequence open();                   // without tokens
  Sequence fork(Sequence sequence);  // with the same tokens, in the same pages: a shared prefix
  void release(Sequence sequence);   // its pages are free unless another sequence has them too

  // A page that must be copied in every pool before its sequence writes: another one reads it too.
  struct Copy {
    int32_t from, to;
  };
  // Room for so many tokens more. Nothing, and no change, when the pool has too few free pages.
  [[nodiscard]] std::optional<std::vector<Copy>> extend(Sequence sequence, int64_t tokens);

  int64_t length(Sequence sequence) const;                  // tokens
  std::span<const int32_t> pages(Sequence sequence) const;  // in the order of their tokens
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t tokens_per_page() const { return tokens_per_page_; }

  // I32 [sequences, columns]: the table of a batch, 0 where a sequence has no page.
  Tensor table(std::span<const Sequence> sequences, int64_t columns) const;
  // I32 [sequences]
  Tensor lengths(std::span<const Sequence> sequences) const;

 private:
  struct Entry {
    std::vector<int32_t> pages;
    int64_t length = 0;
  };
  const Entry& entry(Sequence sequence) const;
  Entry& entry(Sequence sequence);
  int32_t take();
  void drop(int32_t page);

  int64_t tokens_per_page_;
  std::set<int32_t> free_;       // the lowest is taken first
  std::vector<int32_t> owners_;  // of each page: how many sequences have it
  std::map<Sequence, Entry> sequences_;
  Sequence next_ = 0;
};

}  // namespace rlx
