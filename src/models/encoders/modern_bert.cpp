// ModernBERT: norms before each half of a layer, rotated positions, a gate, and most layers see a window only.
#include "models/encoders/encoder.h"
#include "rlx/ops.h"

namespace rlx::models {

Value build_modern_bert(EncoderBuilder& b) {
  const EncoderConfig& c = b.config();
  Value x = b.layer_norm(b.embedding(b.tokens(), "token_embd.weight"), "token_embd_norm");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    // The first layer's rows have just been normalised.
    x = x + b.attention(i == 0 ? x : b.layer_norm(x, layer + "attn_norm"), i);
    x = x + b.feed_forward(b.layer_norm(x, layer + "ffn_norm"), layer, true);
  }
  return b.layer_norm(x, "output_norm");
}

}  // namespace rlx::models
