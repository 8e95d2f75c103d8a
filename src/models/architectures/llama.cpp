// Llama 1 to 3, Mistral, Mixtral, SmolLM, TinyLlama, and what is built like them.
#include "models/architectures.h"
#include "models/experts.h"

namespace rlx::models {

void configure_llama(const ModelSource& source, DecoderConfig& config) {
  config.window = source.integer("attention.sliding_window").value_or(0);
}

Value build_llama(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value seen = b.attention(i, b.qkv(b.rms_norm(x, layer + "attn_norm"), i));
    x = x + b.linear(seen, layer + "attn_output");
    const Value h = b.rms_norm(x, layer + "ffn_norm");
    const bool routed = c.experts > 0 && b.has(layer + "ffn_gate_inp.weight");  // a few layers may be plain
    x = x + (routed ? mixture_of_experts(b, h, layer) : b.gated_feed_forward(h, layer, ops::ActivationKind::kSilu));
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
