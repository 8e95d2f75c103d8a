// Scaled dot-product attention, as ONNX's and ONNX Runtime's ops are built of it.
#pragma once

#include "import/onnx/node.h"
#include "rlx/ops.h"

namespace rlx::onnx {

struct Attention {
  Value q, k, v;  // [batch, heads, length, width]; flat: [batch, length, heads * width]
  bool flat = false;
  int64_t heads = 1, kv_heads = 1;  // of q; of k and v, a divisor of it
  std::optional<Value> keep;        // Bool, broadcast to [batch, heads, queries, keys]: false masks
  std::optional<Value> bias;        // the same shape, added to the scores
  std::optional<Value> kv_len;      // I32 [batch]: keys in use
  std::optional<Value> sink;        // [heads]: the logit of a key that takes part in the softmax and has no value
  bool causal = false;              // query i sees keys up to i + offset
  Dim offset = 0;
  bool at_end = false;            // of causal: queries are the last of the keys in use (kv_len), instead of an offset
  std::optional<int64_t> window;  // of causal attention: the keys that a query sees, its own among them
  std::optional<float> scale;     // absent: 1 / sqrt(width)
  float softcap = 0;              // 0: none
};

// The result in the layout of q.
Value attend(OnnxNode& n, const Attention& a);

// The same in single ops, with what lies between them: scores of q and k, after the softcap, with the masks, and the
// probabilities. The softmax is computed in `softmax`.
struct AttentionSteps {
  Value y, scores, capped, masked, probabilities;
};
AttentionSteps attend_in_steps(OnnxNode& n, const Attention& a, DType softmax);

Value split_heads(const Value& x, int64_t heads);  // [batch, length, heads * width] -> [batch, heads, length, width]
Value join_heads(const Value& x);                  // and back
// Where both are true; an absent one is true everywhere.
Value both(OnnxNode& n, const std::optional<Value>& a, const Value& b);

// Rotary embedding of x, flat or in heads. Tables [positions, rotated / 2] with `positions` I64 [batch, length] or
// [length], or tables [batch, length, rotated / 2] without. The entries of a head beyond `rotated` stay.
struct Rotary {
  Value cos, sin;
  std::optional<Value> positions;
  int64_t width = 0, rotated = 0;
  bool interleaved = false;
};
Value rotate(OnnxNode& n, const Value& x, const Rotary& r);

}  // namespace rlx::onnx
