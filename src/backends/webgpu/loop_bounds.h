// Numbers of iterations: what a graph only compares with the counters of loops. They may be larger than the 32 bits
// that integers have on the device: exporters take the largest int64 where a condition ends the loop.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rlx/graph.h"

namespace rlx::webgpu {

class LoopBounds {
 public:
  explicit LoopBounds(const Graph& graph);

  // Is the value, an I64, compared by loops and nothing else? Then the largest number that the device has does as well
  // as any larger one: counters are of 32 bits too.
  bool contains(ValueId id) const { return bounds_.contains(id); }
  // Is the node there for such values alone, and small? Then the host may compute it, in 64 bits.
  bool leads_to_some(const Node& node) const;

 private:
  std::unordered_set<ValueId> bounds_;
  std::unordered_set<ValueId> parts_;  // results of nodes that lead to bounds
};

}  // namespace rlx::webgpu
