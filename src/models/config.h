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
  std::vector<float> long_factors;  // and by these instead where the context exceeds the original one: longrope
};

// Sizes of layers that carry a state instead of a cache.
struct RecurrentConfig {
  int64_t kernel = 0;  // rows that the causal convolution sees
  int64_t inner = 0;   // channels
  int64_t state = 0;   // values of a channel's state; of a head's, along one side, in delta nets
  int64_t rank = 0;    // of the time step's projection; in delta nets the heads of values
  int64_t groups = 0;  // in delta nets the heads of keys
};

struct DecoderConfig {
  std::string architecture;
  int64_t layers = 0, width = 0, heads = 0, vocabulary = 0, context = 0;
  std::vector<int64_t> kv_heads, ffn;  // by layer
  int64_t head_dim = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  int64_t window = 0;          // of sliding-window layers: keys seen, the query's own included; 0: there are none
  std::vector<bool> windowed;  // which layers those are; none: all
  std::optional<RopeConfig> window_rope;  // of those layers, where it differs
  std::optional<float> attention_scale;   // of scores; absent: 1 / sqrt(head_dim)
  std::optional<float> attention_softcap, final_softcap;
  int64_t experts = 0, experts_used = 0;
  RecurrentConfig recurrent;
  std::vector<bool> is_recurrent;  // by layer; none: no layer is

  int64_t window_of(int64_t layer) const {
    return windowed.empty() || windowed[static_cast<size_t>(layer)] ? window : 0;
  }
  const RopeConfig& rope_of(int64_t layer) const { return window_rope && window_of(layer) > 0 ? *window_rope : rope; }
};

// What the architectures have in common; each of them changes what it does in its own way.
DecoderConfig read_decoder_config(const ModelSource& source);
// Which layers have a sliding window: a list in the file, or all but the last of each `period`.
std::vector<bool> read_window_pattern(const ModelSource& source, int64_t layers, int64_t period);
RecurrentConfig read_recurrent_config(const ModelSource& source);

// Tables [rows, head_dim / 2] of cosines and sines.
struct RopeTables {
  Tensor cos, sin;
};
RopeTables rope_tables(const RopeConfig& config, int64_t head_dim, int64_t rows);

}  // namespace rlx::models
