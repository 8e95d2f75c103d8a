// Small sub-graphs that passes look for, and some that look almost like them.
#pragma once

#include <functional>
#include <vector>

#include "rlx/graph.h"
#include "support/random.h"

namespace rlx::test {

struct PatternSite {
  Rng& rng;
  Graph& graph;
  NamedTensors& params;
  std::function<Value()> pick;  // an f32 value of the graph
  bool symbols = false;         // axis 0 may be a symbol: sizes that meet it are 1 or 4
  bool regions = true;
  bool smooth = false;  // as RandomGraphOptions::smooth
};

// Adds one pattern; returns the values of it that others may use. Throws Error(kInvalid) where operands do not fit.
std::vector<Value> random_pattern(PatternSite& site);

}  // namespace rlx::test
