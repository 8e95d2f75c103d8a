// Random graphs with everything a planner or a pass can trip over: views of views, values used many times and never,
// outputs that are inputs or views, broadcasts, states that read each other, regions, several results, empty tensors.
#pragma once

#include "rlx/graph.h"
#include "rlx/runtime.h"
#include "support/random.h"

namespace rlx::test {

struct RandomGraph {
  Graph graph;
  std::vector<Tensor> inputs;  // by declaration order
  NamedTensors params;
};

struct RandomGraphOptions {
  int64_t nodes = 25;
  bool states = true;
  bool regions = true;
  bool symbols = false;    // axis 0 of the inputs is a symbol (kBatch)
  double patterns = 0.25;  // how much of it are patterns that passes look for
  bool smooth = false;     // no op that makes much of a small difference: comparisons, casts to integers
};

RandomGraph random_graph(Rng& rng, const RandomGraphOptions& options = {});

}  // namespace rlx::test
