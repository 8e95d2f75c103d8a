// Phi 3, 3.5 and 4: q, k and v from one matrix, gate and up from another, the frequencies of long contexts apart.
#include "models/architectures.h"

namespace rlx::models {

void configure_phi3(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  config.window = source.integer("attention.sliding_window").value_or(0);
}

Value build_phi3(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value seen = b.attention(i, b.qkv(b.rms_norm(x, layer + "attn_norm"), i));
    x = x + b.linear(seen, layer + "attn_output");
    const Value both = b.linear(b.rms_norm(x, layer + "ffn_norm"), layer + "ffn_up");
    const int64_t width = both.shape()[2].value() / 2;
    const Value gate = ops::activate(b.columns(both, 0, width), ops::ActivationKind::kSilu);
    x = x + b.linear(gate * b.columns(both, width, width), layer + "ffn_down");
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
