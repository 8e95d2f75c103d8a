// Looking at every value of a run (spec 40, 6): a graph is compiled with all of them as outputs, and their elements are
// read afterwards.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rlx/graph.h"
#include "rlx/runtime.h"

namespace rlx {

// What somebody may want to look at: inputs, states and all that is computed, in the order of the graph.
std::vector<ValueId> watched_values(const Graph& graph);
// The graph with these values as outputs behind its own.
Graph with_watched_outputs(const Graph& graph);

// The watched values of a run, by their place in watched_values(); of an active extent, the rows in use.
using WatchedValue = std::function<Tensor(size_t)>;

std::optional<NonFiniteNode> first_non_finite(const Graph& graph, const WatchedValue& value);
// The first nodes that hold NaN or an infinity, with the elements around; empty when none does.
std::string nan_text(const Graph& graph, const WatchedValue& value);
// A line per node: largest magnitude, elements that are not zero, and the probed element.
std::string nodes_text(const Graph& graph, const WatchedValue& value, const DebugOptions& options);

}  // namespace rlx
