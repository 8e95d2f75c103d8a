// The architectures that rlx builds from a model file: a name and a function each, a file per family.
#pragma once

#include <span>
#include <string_view>

#include "models/builder.h"

namespace rlx::models {

struct Architecture {
  std::string_view name;                                                // of GGUF's general.architecture
  void (*configure)(const ModelSource& source, DecoderConfig& config);  // null: what all have in common will do
  Value (*build)(DecoderBuilder& b);                                    // tokens to hidden rows, the last norm applied
};
std::span<const Architecture> architectures();
// Error(kUnsupported) names those that there are.
const Architecture& find_architecture(const ModelSource& source);

// Error(kInvalid) names what a layer lacks. For tensors that some architectures have and others do not: without them
// the graph would be another model's.
void require_in_layers(const ModelSource& source, const DecoderConfig& config,
                       std::initializer_list<std::string_view> names);

// The vocabulary's scores of hidden rows: the model's own head, or its embeddings.
Value logits_of(DecoderBuilder& b, const Value& hidden);

// Families: one file each in architectures/.
void configure_llama(const ModelSource& source, DecoderConfig& config);
void configure_qwen(const ModelSource& source, DecoderConfig& config);
void configure_qwen_moe(const ModelSource& source, DecoderConfig& config);
void configure_gemma2(const ModelSource& source, DecoderConfig& config);
void configure_gemma3(const ModelSource& source, DecoderConfig& config);
void configure_phi3(const ModelSource& source, DecoderConfig& config);
void configure_gpt2(const ModelSource& source, DecoderConfig& config);
void configure_starcoder2(const ModelSource& source, DecoderConfig& config);
void configure_mamba(const ModelSource& source, DecoderConfig& config);
void configure_qwen3next(const ModelSource& source, DecoderConfig& config);
Value build_llama(DecoderBuilder& b);
Value build_gemma(DecoderBuilder& b);
Value build_phi3(DecoderBuilder& b);
Value build_gpt2(DecoderBuilder& b);
Value build_mamba(DecoderBuilder& b);
Value build_qwen3next(DecoderBuilder& b);

}  // namespace rlx::models
