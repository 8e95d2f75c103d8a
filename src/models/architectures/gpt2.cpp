// GPT-2 (learned positions) and StarCoder 2 (rotated ones): layer norms, biases everywhere, a feed-forward without
// gate.
#include "models/architectures.h"

namespace rlx::models {

void configure_gpt2(const ModelSource& source, DecoderConfig& config) {
  config.rope.dims = 0;
  require_in_layers(source, config, {"attn_qkv.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias"});
}

void configure_starcoder2(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  config.window = source.integer("attention.sliding_window").value_or(0);
}

Value build_gpt2(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  if (c.rope.dims == 0) {
    const std::vector<int64_t> sizes = b.source().require_weight("position_embd.weight").sizes;
    require(sizes.size() == 2, b.source().path(), ": tensor 'position_embd.weight' is not a matrix.");
    const int64_t rows = sizes[0];
    require(b.cache().context <= rows, b.source().path(), ": the model knows ", rows, " positions; a context of ",
            b.cache().context, " tokens is too long.");
    x = x + b.embedding(b.positions(), "position_embd.weight");
  }
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value seen = b.attention(i, b.qkv(b.layer_norm(x, layer + "attn_norm"), i));
    x = x + b.linear(seen, layer + "attn_output");
    x = x + b.feed_forward(b.layer_norm(x, layer + "ffn_norm"), layer, ops::ActivationKind::kGeluApprox);
  }
  return b.layer_norm(x, "output_norm");
}

}  // namespace rlx::models
