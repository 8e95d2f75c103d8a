// The oracle without compiler or planner: walks a graph node by node, every value a tensor of its own. Tests judge
// planned execution by it, regions run through it, constants are folded with it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/host/call.h"
#include "rlx/graph.h"

namespace rlx::reference {

// Inputs by declaration order, params and states by name. Returns the outputs in order. The graph is bound.
std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs, const NamedTensors& params = {},
                             const NamedTensors& states = {});

// The same with params from elsewhere: how a kernel of control flow runs its regions.
std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs, const host::ParamSource& params,
                             const NamedTensors& states = {});

// One op on its own: all results of the node.
std::vector<Tensor> evaluate_op(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs = {});

}  // namespace rlx::reference
