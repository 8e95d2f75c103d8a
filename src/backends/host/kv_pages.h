// Where tokens lie in the pages of a pool (ops/paged_kv.h), for the host's kernels.
#pragma once

#include "backends/host/call.h"

namespace rlx::host {

class KvPageTable {
 public:
  // Operand `pool`: [pages, tokens of a page, heads, row]; operand `table`: I32 [B, pages of a sequence].
  KvPageTable(const Call& call, int64_t pool, int64_t table)
      : pages_(call.input(pool).dim(0)),
        tokens_(call.input(pool).dim(1)),
        heads_(call.input(pool).dim(2)),
        row_(call.input(pool).dim(3)),
        per_sequence_(call.input(table).dim(1)),
        table_(call.input_as<int32_t>(table)) {}

  int64_t capacity() const { return per_sequence_ * tokens_; }  // tokens of a sequence, at most
  int64_t heads() const { return heads_; }
  // The element of the pool that the row of a token's head begins with.
  int64_t at(int64_t b, int64_t token, int64_t head) const {
    const int64_t page = table_[b * per_sequence_ + token / tokens_];
    return ((page * tokens_ + token % tokens_) * heads_ + head) * row_;
  }
  // Throws where a token of [begin, end) has no page.
  void check(int64_t b, int64_t begin, int64_t end) const {
    if (begin < 0 || end < begin || end > capacity())
      fail(ErrorKind::kRuntime,
           str("Tokens ", begin, " … ", end, " of batch ", b, " do not fit its pages (", capacity(), ")."));
    for (int64_t i = begin / tokens_; i * tokens_ < end; ++i)
      if (const int64_t page = table_[b * per_sequence_ + i]; page < 0 || page >= pages_)
        fail(ErrorKind::kRuntime, str("Page ", page, " of batch ", b, " is outside the pool (", pages_, ")."));
  }

 private:
  int64_t pages_, tokens_, heads_, row_, per_sequence_;
  const int32_t* table_;
};

}  // namespace rlx::host
