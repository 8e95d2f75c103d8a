// Qwen 2 and 2.5 (biases), 3 (norms of heads), 3 MoE: Llama's layers, pairs of a head half of it apart.
#include "models/architectures.h"

namespace rlx::models {

void configure_qwen(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  if (config.architecture == "qwen2")
    require_in_layers(source, config, {"attn_q.bias", "attn_k.bias", "attn_v.bias"});
  else
    require_in_layers(source, config, {"attn_q_norm.weight", "attn_k_norm.weight"});
}

void configure_qwen_moe(const ModelSource& source, DecoderConfig& config) {
  configure_qwen(source, config);
  require(config.experts > 0 && config.experts_used > 0, source.path(), ": expert_count (", config.experts,
          ") and expert_used_count (", config.experts_used, ") must be positive.");
}

}  // namespace rlx::models
