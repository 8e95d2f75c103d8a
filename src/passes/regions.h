// Element-wise nodes as steps of a region's chain.
#pragma once

#include <vector>

#include "rlx/graph.h"
#include "rlx/ops/elementwise_region.h"

namespace rlx::passes {

// Can the node be a step of a chain? Element-wise, and nothing to say about it but its op, or for a cast its dtype.
bool is_region_step(const Node& node);

// The chain of these nodes, which are in node order and end with the one whose value is the region's; `inputs` takes
// what they read from outside, in the order of first use.
ops::ElementwiseRegionAttrs region_of(std::vector<const Node*> members, std::vector<ValueId>& inputs);

}  // namespace rlx::passes
