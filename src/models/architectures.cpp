#include "models/architectures.h"

#include "models/encoders/encoder.h"
#include "rlx/ops.h"

namespace rlx::models {

namespace {

constexpr Architecture kArchitectures[] = {
    {"gemma2", configure_gemma2, build_gemma},
    {"gemma3", configure_gemma3, build_gemma},
    {"gpt2", configure_gpt2, build_gpt2},
    {"llama", configure_llama, build_llama},
    {"mamba", configure_mamba, build_mamba},
    {"phi3", configure_phi3, build_phi3},
    {"qwen2", configure_qwen, build_llama},
    {"qwen3", configure_qwen, build_llama},
    {"qwen3moe", configure_qwen_moe, build_llama},
    {"qwen3next", configure_qwen3next, build_qwen3next},
    {"starcoder2", configure_starcoder2, build_gpt2},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& find_architecture(const ModelSource& source) {
  const std::string name = source.architecture();
  std::string known;
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return a;
    known += str(known.empty() ? "" : ", ", a.name);
  }
  if (is_encoder(source))
    fail(ErrorKind::kUnsupported,
         str(source.path(), ": the architecture '", name, "' is an encoder's: it makes vectors (rlx embed), no text."));
  fail(ErrorKind::kUnsupported,
       str(source.path(), ": the architecture '", name, "' is not supported; rlx has: ", known, "."));
}

void require_in_layers(const ModelSource& source, const DecoderConfig& config,
                       std::initializer_list<std::string_view> names) {
  for (int64_t i = 0; i < config.layers; ++i)
    for (const std::string_view name : names) source.require_weight(str("blk.", i, ".", name));
}

Value logits_of(DecoderBuilder& b, const Value& hidden) {
  const Value y = b.has("output.weight") ? b.linear(hidden, "output") : b.linear_with(hidden, "token_embd.weight");
  const std::optional<float> cap = b.config().final_softcap;
  return cap ? b.scale(ops::tanh(b.scale(y, 1 / *cap)), *cap) : y;
}

}  // namespace rlx::models
