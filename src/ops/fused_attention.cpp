#include "rlx/ops/fused_attention.h"

#include "ops/infer.h"
#include "rlx/ops/attention.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/norm.h"
#include "rlx/ops/rope.h"

namespace rlx::ops {

namespace {

// Where the operands of the two ops stand; -1: absent.
struct AttentionOperands {
  int64_t qkv_w, qkv_b, out_w, out_b, mask, cos = -1, sin = -1;
};

AttentionOperands operands_of(const FusedAttentionBlockAttrs& a) {
  const int64_t tables = a.has_bias ? 6 : 4;
  return {.qkv_w = 1,
          .qkv_b = a.has_bias ? 4 : -1,
          .out_w = 2,
          .out_b = a.has_bias ? 5 : -1,
          .mask = 3,
          .cos = a.has_rope ? tables : -1,
          .sin = a.has_rope ? tables + 1 : -1};
}

struct LayerOperands {
  AttentionOperands attention;
  int64_t ln1_g, ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b;
};

LayerOperands operands_of(const FusedTransformerLayerAttrs& a) {
  if (a.has_bias) return {{1, 2, 3, 4, 13}, 5, 6, 7, 8, 9, 10, 11, 12};
  return {{1, -1, 2, -1, 9}, 3, 4, 5, -1, 6, -1, 7, 8};
}

// Operand i is there or absent by attribute; a float of the hidden dtype and of this shape.
void check_weight(const InferCall& call, int64_t i, const Shape& shape, std::string_view what) {
  if (i < 0) return;
  require_same_dtype(call.input(0), call.input(i));
  require_shape(call.input(i), shape, what);
}

void check_attention(const InferCall& call, const AttentionOperands& at, int64_t num_heads, int64_t head_dim) {
  const TensorType& hidden = call.input(0);
  require_float(hidden, "Hidden");
  require_rank(hidden, 3, "Hidden");
  require(num_heads >= 1, "num_heads (", num_heads, ") is less than 1.");
  require(head_dim >= 1, "head_dim (", head_dim, ") is less than 1.");
  const int64_t width = checked_mul(num_heads, head_dim), all = checked_mul(3, width);
  check_weight(call, at.qkv_w, {hidden.dim(2), all}, "qkv_w");
  check_weight(call, at.qkv_b, {all}, "qkv_b");
  check_weight(call, at.out_w, {width, hidden.dim(2)}, "out_w");
  check_weight(call, at.out_b, {hidden.dim(2)}, "out_b");
  require(!is_complex(call.input(at.mask).dtype), "Mask dtype (", call.input(at.mask).dtype, ") is complex.");
  require_shape(call.input(at.mask), {hidden.dim(0), hidden.dim(1)}, "Mask");
}

Types infer_block(const InferCall& call) {
  const auto& a = call.attrs<FusedAttentionBlockAttrs>();
  const int64_t expected = 4 + (a.has_bias ? 2 : 0) + (a.has_rope ? 2 : 0);
  require(call.num_inputs() == expected, "Number of operands (", call.num_inputs(), ") is not ", expected, ".");
  const AttentionOperands at = operands_of(a);
  check_attention(call, at, a.num_heads, a.head_dim);
  const TensorType& hidden = call.input(0);
  if (a.has_rope) {  // by the rule of the op that will read the tables
    const TensorType part{{hidden.dim(0), hidden.dim(1), a.num_heads * a.head_dim}, hidden.dtype};
    const TensorType operands[] = {part, call.input(at.cos), call.input(at.sin)};
    infer_types(rope, operands, RopeAttrs{.head_dim = a.head_dim, .layout = AttentionLayout::kBsf}, call.symbols);
  }
  return hidden;
}

Types infer_layer(const InferCall& call) {
  const auto& a = call.attrs<FusedTransformerLayerAttrs>();
  const int64_t expected = a.has_bias ? 14 : 10;
  require(call.num_inputs() == expected, "Number of operands (", call.num_inputs(), ") is not ", expected, ".");
  require(a.intermediate_size >= 1, "intermediate_size (", a.intermediate_size, ") is less than 1.");
  const LayerOperands at = operands_of(a);
  check_attention(call, at.attention, a.num_heads, a.head_dim);
  const Dim width = call.input(0).dim(2);
  check_weight(call, at.ln1_g, {width}, "ln1_g");
  check_weight(call, at.ln1_b, {width}, "ln1_b");
  check_weight(call, at.fc1_w, {width, a.intermediate_size}, "fc1_w");
  check_weight(call, at.fc1_b, {a.intermediate_size}, "fc1_b");
  check_weight(call, at.fc2_w, {a.intermediate_size, width}, "fc2_w");
  check_weight(call, at.fc2_b, {width}, "fc2_b");
  check_weight(call, at.ln2_g, {width}, "ln2_g");
  check_weight(call, at.ln2_b, {width}, "ln2_b");
  return call.input(0);
}

// x·w, + b where there is one.
Value project(const DecomposeCall& call, const Value& x, int64_t w, int64_t b) {
  const Value y = matmul(x, call.input(w));
  return b < 0 ? y : add(y, call.input(b));
}

Value attend(const DecomposeCall& call, const AttentionOperands& at, int64_t num_heads, int64_t head_dim) {
  const Value qkv = project(call, call.input(0), at.qkv_w, at.qkv_b);
  const int64_t width = num_heads * head_dim;
  const auto part = [&](int64_t i) { return narrow(qkv, {.axis = 2, .start = i * width, .len = width}); };
  const auto turned = [&](const Value& x) {
    if (at.cos < 0) return x;
    return rope(x, call.input(at.cos), call.input(at.sin), {.head_dim = head_dim, .layout = AttentionLayout::kBsf});
  };
  const Value y = attention(
      turned(part(0)), turned(part(1)), part(2), call.input(at.mask),
      {.num_heads = num_heads, .head_dim = head_dim, .layout = AttentionLayout::kBsf, .mask_kind = MaskKind::kCustom});
  return project(call, y, at.out_w, at.out_b);
}

Values decompose_block(const DecomposeCall& call) {
  const auto& a = call.attrs<FusedAttentionBlockAttrs>();
  return {attend(call, operands_of(a), a.num_heads, a.head_dim)};
}

Values decompose_layer(const DecomposeCall& call) {
  const auto& a = call.attrs<FusedTransformerLayerAttrs>();
  const LayerOperands at = operands_of(a);
  const Value attended = attend(call, at.attention, a.num_heads, a.head_dim);
  const Value h = layer_norm(attended + call.input(0), call.input(at.ln1_g), call.input(at.ln1_b), {.eps = a.eps1});
  const Value inner = activate(project(call, h, at.fc1_w, at.fc1_b), a.activation);
  const Value outer = project(call, inner, at.fc2_w, at.fc2_b);
  return {layer_norm(outer + h, call.input(at.ln2_g), call.input(at.ln2_b), {.eps = a.eps2})};
}

}  // namespace

constinit const Op<FusedAttentionBlockAttrs> fused_attention_block{
    {.name = "fused_attention_block",
     .category = "Fused",
     .min_inputs = 4,
     .max_inputs = 8,
     .infer = infer_block,
     .decompose = decompose_block,
     .traits = {.extent = ExtentRule::kOwnBound},
     .doc = "Self-attention with its projections: (attention of the Q, K, V columns of hidden * qkv_w) * out_w."}};

constinit const Op<FusedTransformerLayerAttrs> fused_transformer_layer{
    {.name = "fused_transformer_layer",
     .category = "Fused",
     .min_inputs = 10,
     .max_inputs = 14,
     .infer = infer_layer,
     .decompose = decompose_layer,
     .traits = {.extent = ExtentRule::kOwnBound},
     .doc = "A post-norm encoder layer: h = LN(attention(hidden) + hidden), LN(fc2(act(fc1(h))) + h)."}};

}  // namespace rlx::ops
