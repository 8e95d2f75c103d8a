// From the vocabulary's scores to the next token, as nodes of a graph: nothing but the token leaves the device.
#pragma once

#include <cstdint>
#include <span>

#include "rlx/graph.h"

namespace rlx {
class Executable;
}

namespace rlx::generate {

struct SamplingOptions {
  float temperature = 0.8f;                            // 0: the likeliest token, always
  int64_t top_k = 40;                                  // 0: all
  float top_p = 0.95f;                                 // 1: all
  float min_p = 0.05f;                                 // of the likeliest token's probability; 0: all
  float repetition_penalty = 1, presence_penalty = 0;  // of tokens among the last `penalty_window`
  int64_t penalty_window = 64;
  uint64_t seed = 0;

  bool is_greedy() const { return temperature <= 1e-6f || top_k == 1; }
  bool has_penalties() const { return repetition_penalty != 1 || presence_penalty != 0; }
};
void check(const SamplingOptions& options);  // Error(kInvalid) names the option that makes no sense

// scores [batch, vocabulary] to tokens I32 [batch]. Adds the states `rng` and, with penalties, `recent`.
Value sample(Graph& graph, Value scores, const SamplingOptions& options);

// Sets those states for draws that begin now, or go on after the first `draws`. `recent`: by sequence, the tokens
// before.
void begin_sampling(Executable& executable, const SamplingOptions& options,
                    std::span<const std::span<const int32_t>> recent, int64_t draws = 0);

}  // namespace rlx::generate
