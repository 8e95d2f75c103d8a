// Llama 1 to 3, Mistral, SmolLM, TinyLlama, and what is built like them.
#include "models/architectures.h"

namespace rlx::models {

void configure_llama(const ModelSource& source, DecoderConfig& config) {
  config.window = source.integer("attention.sliding_window").value_or(0);
}

Value build_llama(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value h = b.rms_norm(x, layer + "attn_norm");
    const Value q = b.rope(b.linear(h, layer + "attn_q"), c.rope), k = b.rope(b.linear(h, layer + "attn_k"), c.rope);
    const Value seen = b.attention(i, q, k, b.linear(h, layer + "attn_v"), {.window = c.window});
    x = x + b.linear(seen, layer + "attn_output");
    x = x + b.feed_forward(b.rms_norm(x, layer + "ffn_norm"), layer, ops::ActivationKind::kSilu);
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
