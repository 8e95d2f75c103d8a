// BERT, RoBERTa, XLM-RoBERTa and DistilBERT (learned positions), Nomic BERT (rotated ones and a gate): norms behind
// each half of a layer.
#include "models/encoders/encoder.h"
#include "rlx/ops.h"

namespace rlx::models {

Value build_bert(EncoderBuilder& b) {
  const EncoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  if (b.has("token_types.weight")) x = x + b.embedding(b.types(), "token_types.weight");
  if (b.has("position_embd.weight")) x = x + b.embedding(b.positions(), "position_embd.weight");
  x = b.layer_norm(x, "token_embd_norm");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    x = b.layer_norm(x + b.attention(x, i), layer + "attn_output_norm");
    x = b.layer_norm(x + b.feed_forward(x, layer, false), layer + "layer_output_norm");
  }
  return x;
}

}  // namespace rlx::models
