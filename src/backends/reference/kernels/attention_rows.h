// What attention and its gradient share: where a head's rows lie, and the scores and probabilities of one query.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/host/call.h"
#include "rlx/ops/attention.h"

namespace rlx::reference {

// Elements from one batch, head, position to the next; the width of a head is dense.
struct HeadStrides {
  int64_t batch = 0, head = 0, seq = 0;
  int64_t at(int64_t b, int64_t h, int64_t s) const { return b * batch + h * head + s * seq; }
};

class AttentionRows {
 public:
  // Operands q, k, v at 0, 1, 2, the mask (if the kind has one) at `next`, then kv_len if `has_kv_len`.
  AttentionRows(const host::Call& call, int64_t next, bool has_kv_len);

  int64_t batch, heads, kv_heads, queries, keys, width;
  HeadStrides q, kv;  // q's also hold for y and dy
  HeadStrides mask;   // zero for broadcast dims; `seq` is the query's, keys have mask_key
  int64_t mask_key = 0;
  double scale;

  int64_t kv_head(int64_t h) const { return h / (heads / kv_heads); }

  // Of query i: the keys it sees, in order, and per key
  struct Key {
    int64_t j;
    double score;   // with scale, softcap and bias
    double slope;   // of the score with respect to q . k
    double weight;  // softmax of the scores
  };
  const std::vector<Key>& row(int64_t b, int64_t h, int64_t i);
  double lse() const { return lse_; }  // of the row asked for last

 private:
  bool visible(int64_t b, int64_t h, int64_t i, int64_t j) const;

  ops::AttentionAttrs attrs_;
  host::Reader q_, k_, mask_;
  std::vector<int64_t> kv_len_;  // empty: not given
  std::vector<Key> row_;
  double lse_ = 0;
};

}  // namespace rlx::reference
