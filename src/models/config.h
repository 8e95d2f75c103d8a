// What a decoder is made of, as its file says (spec of the file format: GGUF's metadata names).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/source.h"
#include "rlx/ops/rope.h"

namespace rlx::models {

// How positions become angles.
struct RopeConfig {
  int64_t dims = 0;  // of a head that are rotated; 0: none
  double base = 10000;
  ops::RopeStyle style = ops::RopeStyle::kNeox;
  // none, linear (positions divided by the factor), yarn (NTK by parts), longrope (factors per pair)
  std::string scaling = "none";
  double factor = 1;
  int64_t original_context = 0;  // that the model was trained for, before it was scaled
  double yarn_beta_fast = 32, yarn_beta_slow = 1, attention_factor = 1;
  std::vector<float> pair_factors;  // frequencies are divided by these, a value per pair: Llama 3 and longrope
};

struct DecoderConfig {
  std::string architecture;
  int64_t layers = 0, width = 0, heads = 0, vocabulary = 0, context = 0;
  std::vector<int64_t> kv_heads, ffn;  // by layer
  int64_t head_dim = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  int64_t window = 0;  // of sliding-window layers: keys seen, the query's own included; 0: there are none
  std::optional<float> attention_softcap, final_softcap;
  int64_t experts = 0, experts_used = 0;
};

// What the architectures have in common; each of them changes what it does in its own way.
DecoderConfig read_decoder_config(const ModelSource& source);

// Tables [rows, head_dim / 2] of cosines and sines.
struct RopeTables {
  Tensor cos, sin;
};
RopeTables rope_tables(const RopeConfig& config, int64_t head_dim, int64_t rows);

}  // namespace rlx::models
