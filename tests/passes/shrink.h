// Makes a failing graph small: the fewer nodes it has, the sooner somebody sees what is wrong.
#pragma once

#include <functional>

#include "rlx/graph.h"

namespace rlx::test {

// The smallest graph found that still fails. `fails` must be true of `graph`; where it throws, the graph counts as
// different, not as failing.
Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace rlx::test
