// The graphs that benchmarks and plan tests measure, made by the builder: shapes of real models, random weights if any.
#pragma once

#include <span>
#include <string_view>

#include "rlx/graph.h"

namespace rlx::bench {

// BERT-base: 12 post-norm layers, width 768, 12 heads, MLP 3072.
Graph transformer_encoder(int64_t batch = 1, int64_t seq = 384);
// Llama-like: 12 pre-norm layers, width 768, 12 heads over 4 key-value heads, rotary positions, SwiGLU, KV cache as
// states.
Graph transformer_decoder(int64_t batch = 1, int64_t seq = 16, int64_t cache = 512);
// ResNet-50: bottleneck blocks 3, 4, 6, 3 on 224 x 224 images, batch norms folded into the convolutions.
Graph resnet50(int64_t batch = 1);
// U-Net: four levels down and up with skip connections, 64 to 1024 channels, on 256 x 256 images.
Graph unet(int64_t batch = 1);

struct NamedGraph {
  std::string_view name;
  Graph (*make)();
};
std::span<const NamedGraph> all_graphs();

}  // namespace rlx::bench
