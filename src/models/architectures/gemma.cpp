// Gemma 2 (scores capped, every other layer with a window) and Gemma 3 (norms of heads, five layers of six with a
// window and a rope of their own). Norms before and after both halves of a layer. The file has 1 added to their
// weights.
#include <cmath>

#include "models/architectures.h"

namespace rlx::models {

namespace {

// The largest model of each scales its scores by the width of a head as the others would have it; files do not say.
void configure_scale(DecoderConfig& config, int64_t layers_of_largest) {
  if (config.attention_scale || config.layers != layers_of_largest) return;
  config.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.width / config.heads)));
}

}  // namespace

void configure_gemma2(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  config.window = source.integer("attention.sliding_window").value_or(4096);
  config.windowed = read_window_pattern(source, config.layers, 2);
  if (!config.attention_softcap) config.attention_softcap = 50.0f;
  if (!config.final_softcap) config.final_softcap = 30.0f;
  configure_scale(config, 46);
}

void configure_gemma3(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  config.window = source.integer("attention.sliding_window").value_or(0);
  config.windowed = read_window_pattern(source, config.layers, 6);
  RopeConfig local = config.rope;
  local.base = source.number("rope.freq_base_swa").value_or(10000);
  local.scaling = "none";
  local.factor = 1;
  config.window_rope = local;
  configure_scale(config, 62);
  require_in_layers(source, config, {"attn_q_norm.weight", "attn_k_norm.weight"});
}

Value build_gemma(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  const float root = std::sqrt(static_cast<float>(c.width));
  Value x = b.scale(b.embedding(b.tokens(), "token_embd.weight"), root);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value seen = b.attention(i, b.qkv(b.rms_norm(x, layer + "attn_norm"), i));
    x = x + b.rms_norm(b.linear(seen, layer + "attn_output"), layer + "post_attention_norm");
    const Value h = b.gated_feed_forward(b.rms_norm(x, layer + "ffn_norm"), layer, ops::ActivationKind::kGeluApprox);
    x = x + b.rms_norm(h, layer + "post_ffw_norm");
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
