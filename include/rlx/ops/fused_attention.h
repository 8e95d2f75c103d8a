// Whole attention blocks as one op (spec 10, 4.17); each is its decomposition.
#pragma once

#include "rlx/graph.h"
#include "rlx/ops/activation.h"

namespace rlx::ops {

struct FusedAttentionBlockAttrs {
  int64_t num_heads = 1, head_dim = 0;
  bool has_bias = false, has_rope = false;
  static constexpr auto fields = std::tuple{
      field("num_heads", &FusedAttentionBlockAttrs::num_heads), field("head_dim", &FusedAttentionBlockAttrs::head_dim),
      field("has_bias", &FusedAttentionBlockAttrs::has_bias), field("has_rope", &FusedAttentionBlockAttrs::has_rope)};
};
// (hidden [B, S, C], qkv_w [C, 3HD], out_w [HD, C], mask [B, S], [qkv_b, out_b], [cos, sin]); columns of qkv_w are Q,
// K, V.
extern const Op<FusedAttentionBlockAttrs> fused_attention_block;

struct FusedTransformerLayerAttrs {
  int64_t num_heads = 1, head_dim = 0, intermediate_size = 0;
  float eps1 = 1e-5f, eps2 = 1e-5f;
  ActivationKind activation = ActivationKind::kGelu;
  bool has_bias = false;
  static constexpr auto fields = std::tuple{field("num_heads", &FusedTransformerLayerAttrs::num_heads),
                                            field("head_dim", &FusedTransformerLayerAttrs::head_dim),
                                            field("intermediate_size", &FusedTransformerLayerAttrs::intermediate_size),
                                            field("eps1", &FusedTransformerLayerAttrs::eps1),
                                            field("eps2", &FusedTransformerLayerAttrs::eps2),
                                            field("activation", &FusedTransformerLayerAttrs::activation),
                                            field("has_bias", &FusedTransformerLayerAttrs::has_bias)};
};
// With bias: (hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask),
// without: (hidden, qkv_w, out_w, ln1_g, ln1_b, fc1_w, fc2_w, ln2_g, ln2_b, mask).
extern const Op<FusedTransformerLayerAttrs> fused_transformer_layer;

}  // namespace rlx::ops
