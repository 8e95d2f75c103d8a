// GGUF files in memory, good ones and bad ones, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace rlx::test {

class GgufBytes {
 public:
  template <class T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string text(const std::string& s) { return raw<uint64_t>(s.size()) + s; }

  struct Tensor {
    std::vector<uint64_t> sizes;  // outermost first
    uint32_t type = 0;            // ggml's code
    std::string bytes;
    int64_t offset = -1;  // -1: behind the others
  };
  uint32_t version = 3;
  int64_t tensor_count = -1, value_count = -1;  // -1: as many as there are
  std::map<std::string, std::string> values;    // the type's code and the value, as bytes
  std::map<std::string, Tensor> tensors;

  void set(const std::string& key, uint32_t value) { values[key] = raw<uint32_t>(4) + raw(value); }
  void set(const std::string& key, float value) { values[key] = raw<uint32_t>(6) + raw(value); }
  void set(const std::string& key, const char* value) { values[key] = raw<uint32_t>(8) + text(value); }

  std::string bytes() const {
    std::string head =
        "GGUF" + raw(version) + raw<int64_t>(tensor_count < 0 ? static_cast<int64_t>(tensors.size()) : tensor_count);
    head += raw<int64_t>(value_count < 0 ? static_cast<int64_t>(values.size()) : value_count);
    for (const auto& [key, value] : values) head += text(key) + value;
    std::string body;
    for (const auto& [name, t] : tensors) {
      body.resize((body.size() + 31) / 32 * 32);
      head += text(name) + raw(static_cast<uint32_t>(t.sizes.size()));
      for (auto s = t.sizes.rbegin(); s != t.sizes.rend(); ++s) head += raw(*s);
      head += raw(t.type) + raw<uint64_t>(t.offset < 0 ? body.size() : static_cast<uint64_t>(t.offset));
      body += t.bytes;
    }
    head.resize((head.size() + 31) / 32 * 32);
    return head + body;
  }
};

// A llama of one layer, 32 columns and 8 tokens, its matrices Q4_0: five kilobytes.
inline GgufBytes small_llama() {
  GgufBytes g;
  g.set("general.architecture", "llama");
  g.set("llama.block_count", 1u);
  g.set("llama.context_length", 64u);
  g.set("llama.embedding_length", 32u);
  g.set("llama.feed_forward_length", 32u);
  g.set("llama.attention.head_count", 2u);
  g.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const auto matrix = [&](const std::string& name, uint64_t rows) {
    std::string bytes;
    for (uint64_t i = 0; i < rows; ++i) {
      bytes += GgufBytes::raw<uint16_t>(0x2C00);  // a scale of 1/16
      for (int j = 0; j < 16; ++j)
        bytes += static_cast<char>(name.size() * 37 + i * 11 + static_cast<uint64_t>(j) * 29);
    }
    g.tensors[name] = {{rows, 32}, 2, bytes};
  };
  const auto norm = [&](const std::string& name) {
    std::string bytes;
    for (int i = 0; i < 32; ++i) bytes += GgufBytes::raw(1.0f);
    g.tensors[name] = {{32}, 0, bytes};
  };
  matrix("token_embd.weight", 8);
  norm("output_norm.weight");
  norm("blk.0.attn_norm.weight");
  norm("blk.0.ffn_norm.weight");
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
    matrix(std::string("blk.0.") + name + ".weight", 32);
  return g;
}

}  // namespace rlx::test
