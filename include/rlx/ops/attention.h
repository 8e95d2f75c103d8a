// Scaled dot-product attention with grouped-query heads, masks and a cache length (spec 10, 4.6), and its gradient.
#pragma once

#include <array>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::ops {

// BHSD [B, H, S, D], BSHD [B, S, H, D], BSF [B, S, H * D]; stated, never guessed.
enum class AttentionLayout : int32_t { kBhsd, kBshd, kBsf };
constexpr auto names_of(AttentionLayout) { return std::array<std::string_view, 3>{"bhsd", "bshd", "bsf"}; }

enum class MaskKind : int32_t {
  kNone,
  kCausal,         // keys up to the query's own position
  kCustom,         // keys where the mask operand is >= 0.5; NaN masks
  kSlidingWindow,  // the query's own key and `window` keys before it
  kBias            // the mask operand is added to the scores; -inf masks
};
constexpr auto names_of(MaskKind) {
  return std::array<std::string_view, 5>{"none", "causal", "custom", "sliding_window", "bias"};
}
constexpr bool has_mask_operand(MaskKind kind) { return kind == MaskKind::kCustom || kind == MaskKind::kBias; }

struct AttentionAttrs {
  int64_t num_heads = 1;  // of q; k and v may have fewer that divide them
  int64_t head_dim = 0;
  AttentionLayout layout = AttentionLayout::kBhsd;
  MaskKind mask_kind = MaskKind::kNone;
  int64_t window = 0;                       // of kSlidingWindow
  std::optional<float> score_scale;         // absent: 1 / sqrt(head_dim)
  std::optional<float> attn_logit_softcap;  // c * tanh(score / c), when it is positive
  static constexpr auto fields = std::tuple{field("num_heads", &AttentionAttrs::num_heads),
                                            field("head_dim", &AttentionAttrs::head_dim),
                                            field("layout", &AttentionAttrs::layout),
                                            field("mask_kind", &AttentionAttrs::mask_kind),
                                            field("window", &AttentionAttrs::window),
                                            field("score_scale", &AttentionAttrs::score_scale),
                                            field("attn_logit_softcap", &AttentionAttrs::attn_logit_softcap)};
};

// (q, k, v, [mask], [kv_len]): y as q, and lse F32 [B, H, Sq]. The mask is there for kCustom and kBias only: [B, Sk],
// [B, Sq, Sk] or [B, H, Sq, Sk], with dims of 1 broadcast. kv_len I32 [B]: keys in use; queries are the last of them.
extern const Op<AttentionAttrs> attention;

// (q, k, v, dy, [mask], [kv_len], [y, lse]): dq, dk, dv, and for kBias dbias in the mask's shape.
extern const Op<AttentionAttrs> attention_backward;

}  // namespace rlx::ops
