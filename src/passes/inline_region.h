// Bodies of control flow as plain nodes of the graph around them.
#pragma once

#include <string>

#include "passes/rewriter.h"

namespace rlx::passes {

// Why `body` cannot stand among the nodes of the graph with operands of these types; empty when it can. Its inputs must
// have exactly these types, and its symbols must mean what they mean in the graph.
std::string why_not_inline(const Rewriter& rw, const Graph& body, std::span<const TensorType> inputs);

// Appends the nodes of `body` with its inputs replaced; its params are the graph's own of the same name. Returns its
// outputs.
Values inline_region(Rewriter& rw, const Graph& body, std::span<const Value> inputs);

}  // namespace rlx::passes
