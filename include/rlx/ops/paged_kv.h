// A KV cache in pages (spec 20, 5): a pool of pages [pages, tokens of a page, heads of k, row] that sequences share,
// and a table I32 [B, pages of a sequence] that says where they lie: token t of batch b is in page table[b, t /
// tokens], at t % tokens. What the table holds beyond a sequence's length does not matter.
#pragma once

#include "rlx/ops/attention.h"

namespace rlx::ops {

// How a row of head_dim elements lies in a pool.
enum class KvFormat : int32_t {
  kFloat,  // as they are, in the pool's own float dtype
  // In U32 words: quants of 8 bits, four to a word, then an f16 scale per 32 of them, two to a word (GGUF's q8_0, with
  // every word aligned). head_dim is a multiple of 32.
  kQ8
};
constexpr auto names_of(KvFormat) { return std::array<std::string_view, 2>{"float", "q8_0"}; }
int64_t kv_row_elements(KvFormat format, int64_t head_dim);  // the last size of a pool

struct PagedAttentionAttrs {
  int64_t num_heads = 1;  // of q
  int64_t head_dim = 0;
  MaskKind mask_kind = MaskKind::kNone;  // none, causal or sliding_window
  int64_t window = 0;
  std::optional<float> score_scale;
  std::optional<float> attn_logit_softcap;
  KvFormat format = KvFormat::kFloat;
  static constexpr auto fields = std::tuple{field("num_heads", &PagedAttentionAttrs::num_heads),
                                            field("head_dim", &PagedAttentionAttrs::head_dim),
                                            field("mask_kind", &PagedAttentionAttrs::mask_kind),
                                            field("window", &PagedAttentionAttrs::window),
                                            field("score_scale", &PagedAttentionAttrs::score_scale),
                                            field("attn_logit_softcap", &PagedAttentionAttrs::attn_logit_softcap),
                                            field("format", &PagedAttentionAttrs::format)};
  AttentionAttrs dense() const;  // of attention on the same rows, in layout BSHD
};
// (q [B, Sq, H, D], k_pool, v_pool, table, kv_len I32 [B]): y as q. Queries are the last of the kv_len tokens in use.
extern const Op<PagedAttentionAttrs> paged_attention;

struct PagedKvAppendAttrs {
  KvFormat format = KvFormat::kFloat;
  static constexpr auto fields = std::tuple{field("format", &PagedKvAppendAttrs::format)};
};
// (pool, rows [B, Sn, heads of k, D], table, len I32 [B]): the pool with row i of batch b as token len[b] + i.
extern const Op<PagedKvAppendAttrs> paged_kv_append;

}  // namespace rlx::ops
