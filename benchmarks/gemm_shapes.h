// 60 products of real models.
#pragma once

#include <cstdint>
#include <span>

struct GemmShape {
  const char* name;
  int64_t batch, m, n, k;
  bool weight;        // B is known when the model is compiled
  bool b_transposed;  // B is stored [n, k]
};

inline std::span<const GemmShape> gemm_shapes() {
  static const GemmShape shapes[] = {
      {"square 64", 1, 64, 64, 64, true, false},
      {"square 96", 1, 96, 96, 96, true, false},
      {"square 128", 1, 128, 128, 128, true, false},
      {"square 192", 1, 192, 192, 192, true, false},
      {"square 256", 1, 256, 256, 256, true, false},
      {"square 384", 1, 384, 384, 384, true, false},
      {"square 512", 1, 512, 512, 512, true, false},
      {"square 768", 1, 768, 768, 768, true, false},
      {"square 1024", 1, 1024, 1024, 1024, true, false},
      {"square 1536", 1, 1536, 1536, 1536, true, false},
      {"square 2048", 1, 2048, 2048, 2048, true, false},
      {"BERT-base qkv, 1 token", 1, 1, 2304, 768, true, false},
      {"BERT-base projection, 16 tokens", 1, 16, 768, 768, true, false},
      {"BERT-base projection, 128 tokens", 1, 128, 768, 768, true, false},
      {"BERT-base up, 128 tokens", 1, 128, 3072, 768, true, false},
      {"BERT-base down, 128 tokens", 1, 128, 768, 3072, true, false},
      {"BERT-base up, 512 tokens", 1, 512, 3072, 768, true, false},
      {"BERT-base down, 512 tokens", 1, 512, 768, 3072, true, false},
      {"BERT-large up, 384 tokens", 1, 384, 4096, 1024, true, false},
      {"BERT pooler, batch 8", 1, 8, 768, 768, true, false},
      {"GPT-2 qkv, 1 token", 1, 1, 2304, 768, true, true},
      {"GPT-2 up, 1 token", 1, 1, 3072, 768, true, false},
      {"GPT-2 down, 1 token", 1, 1, 768, 3072, true, false},
      {"GPT-2 LM head, 1 token", 1, 1, 50257, 768, true, true},
      {"GPT-2 LM head, 64 tokens", 1, 64, 50257, 768, true, true},
      {"GPT-2 qkv, 1024 tokens", 1, 1024, 2304, 768, true, false},
      {"Llama-7B projection, 1 token", 1, 1, 4096, 4096, true, true},
      {"Llama-7B up, 1 token", 1, 1, 11008, 4096, true, true},
      {"Llama-7B down, 1 token", 1, 1, 4096, 11008, true, true},
      {"Llama-7B projection, 4 tokens", 1, 4, 4096, 4096, true, true},
      {"Llama-7B projection, 8 tokens", 1, 8, 4096, 4096, true, false},
      {"Llama-7B projection, 32 tokens", 1, 32, 4096, 4096, true, true},
      {"Llama-7B projection, 128 tokens", 1, 128, 4096, 4096, true, true},
      {"Llama-1B up, 256 tokens", 1, 256, 8192, 2048, true, true},
      {"Llama-1B kv, 256 tokens", 1, 256, 512, 2048, true, true},
      {"ViT-B patches", 1, 196, 768, 768, true, false},
      {"ViT-B up", 1, 197, 3072, 768, true, false},
      {"ViT-B down", 1, 197, 768, 3072, true, false},
      {"ViT-B head", 1, 1, 1000, 768, true, false},
      {"ViT-L qkv, batch 4", 1, 788, 3072, 1024, true, false},
      {"attention scores 12x512x64", 12, 512, 512, 64, false, true},
      {"attention context 12x512x64", 12, 512, 64, 512, false, false},
      {"attention scores 12x128x64", 12, 128, 128, 64, false, true},
      {"attention context 12x128x64", 12, 128, 64, 128, false, false},
      {"decode scores 32x1x1024", 32, 1, 1024, 128, false, true},
      {"decode context 32x1x1024", 32, 1, 128, 1024, false, false},
      {"ResNet-50 conv1", 1, 12544, 64, 147, true, false},
      {"ResNet-50 2a 1x1", 1, 3136, 64, 256, true, false},
      {"ResNet-50 2b 3x3", 1, 3136, 64, 576, true, false},
      {"ResNet-50 2c 1x1", 1, 3136, 256, 64, true, false},
      {"ResNet-50 3b 3x3", 1, 784, 128, 1152, true, false},
      {"ResNet-50 4b 3x3", 1, 196, 256, 2304, true, false},
      {"ResNet-50 5b 3x3", 1, 49, 512, 4608, true, false},
      {"ResNet-50 5c 1x1", 1, 49, 2048, 512, true, false},
      {"ResNet-50 head", 1, 1, 1000, 2048, true, false},
      {"tall 16384x32x32", 1, 16384, 32, 32, true, false},
      {"tall 8192x16x256", 1, 8192, 16, 256, true, false},
      {"matrix times vector 4096", 1, 4096, 1, 4096, false, false},
      {"odd 127x129x131", 1, 127, 129, 131, true, false},
      {"odd 1001x77x333", 1, 1001, 77, 333, true, false},
  };
  static_assert(sizeof(shapes) / sizeof(shapes[0]) == 60);
  return shapes;
}
