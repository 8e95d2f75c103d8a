#include "backends/reference/kernels/attention_rows.h"

#include <algorithm>
#include <cmath>

namespace rlx::reference {

namespace {

HeadStrides strides_of(ops::AttentionLayout layout, int64_t heads, int64_t seq, int64_t width) {
  if (layout == ops::AttentionLayout::kBhsd) return {heads * seq * width, seq * width, width};
  return {seq * heads * width, width, heads * width};
}

}  // namespace

AttentionRows::AttentionRows(const host::Call& call, int64_t next, bool has_kv_len)
    : attrs_(call.attrs<ops::AttentionAttrs>()), q_(call.reader(0)), k_(call.reader(1)), mask_(call.reader(0)) {
  const host::View &qv = call.input(0), &kv_view = call.input(1);
  const bool bhsd = attrs_.layout == ops::AttentionLayout::kBhsd;
  width = attrs_.head_dim;
  heads = attrs_.num_heads;
  batch = qv.dim(0);
  queries = qv.dim(bhsd ? 2 : 1);
  keys = kv_view.dim(bhsd ? 2 : 1);
  kv_heads = bhsd                                           ? kv_view.dim(1)
             : attrs_.layout == ops::AttentionLayout::kBshd ? kv_view.dim(2)
                                                            : kv_view.dim(2) / width;
  q = strides_of(attrs_.layout, heads, queries, width);
  kv = strides_of(attrs_.layout, kv_heads, keys, width);
  scale = attrs_.score_scale ? static_cast<double>(*attrs_.score_scale) : 1 / std::sqrt(static_cast<double>(width));
  if (ops::has_mask_operand(attrs_.mask_kind)) {
    const host::View& m = call.input(next);
    mask_ = call.reader(next++);
    int64_t stride = 1, axis = m.rank();
    const auto dim = [&](bool present) -> int64_t {
      if (!present) return 0;
      const int64_t size = m.dim(--axis), own = size == 1 ? 0 : stride;
      stride *= size;
      return own;
    };
    mask_key = dim(true);
    mask.seq = dim(m.rank() >= 3);
    mask.head = dim(m.rank() == 4);
    mask.batch = dim(true);
  }
  if (has_kv_len) {
    const host::IntReader lengths = call.int_reader(next);
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > keys)
        fail(ErrorKind::kRuntime, str("kv_len (", lengths[b], ") of batch ", b, " is outside 0 … ", keys, "."));
      kv_len_.push_back(lengths[b]);
    }
  }
}

bool AttentionRows::visible(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const auto at = static_cast<size_t>(b);
  if (!kv_len_.empty() && j >= kv_len_[at]) return false;
  // Queries are the last positions of the keys in use (Q21).
  const int64_t offset = kv_len_.empty() ? std::max<int64_t>(0, keys - queries) : kv_len_[at] - queries;
  const int64_t p = i + offset;
  switch (attrs_.mask_kind) {
    case ops::MaskKind::kNone:
    case ops::MaskKind::kBias: return true;
    case ops::MaskKind::kCausal: return j <= p;
    case ops::MaskKind::kSlidingWindow: return j <= p && p - j <= attrs_.window;
    case ops::MaskKind::kCustom: return mask_[mask.at(b, h, i) + j * mask_key] >= 0.5;  // false for NaN
  }
  return false;
}

const std::vector<AttentionRows::Key>& AttentionRows::row(int64_t b, int64_t h, int64_t i) {
  row_.clear();
  const int64_t qi = q.at(b, h, i);
  const double cap = attrs_.attn_logit_softcap ? static_cast<double>(*attrs_.attn_logit_softcap) : 0;
  double top = -INFINITY;
  for (int64_t j = 0; j < keys; ++j) {
    if (!visible(b, h, i, j)) continue;  // what lies in a masked key is not even read: it may be NaN
    const int64_t kj = kv.at(b, kv_head(h), j);
    double score = 0, slope = scale;
    for (int64_t d = 0; d < width; ++d) score += q_[qi + d] * k_[kj + d];
    score *= scale;
    if (cap > 0) {
      const double t = std::tanh(score / cap);
      score = cap * t;
      slope *= 1 - t * t;
    }
    if (attrs_.mask_kind == ops::MaskKind::kBias) score += mask_[mask.at(b, h, i) + j * mask_key];
    if (score == -INFINITY) continue;  // a masked key too (Q22)
    top = std::max(top, score);
    row_.push_back({j, score, slope, 0});
  }
  double sum = 0;
  for (Key& key : row_) sum += key.weight = std::exp(key.score - top);
  for (Key& key : row_) key.weight /= sum;
  lse_ = row_.empty() ? -INFINITY : top + std::log(sum);
  return row_;
}

}  // namespace rlx::reference
