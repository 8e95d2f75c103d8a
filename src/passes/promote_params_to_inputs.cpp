#include <algorithm>

#include "passes/quantize_graph.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

Graph promote_params_to_inputs(const Graph& graph, std::span<const std::string> names, bool lenient) {
  if (!lenient)
    for (const std::string& name : names)
      require(graph.find_leaf(ops::param, name) != nullptr, "Graph '", graph.name(), "' has no param '", name, "'.");
  for (const std::string& name : names)
    require(graph.find_leaf(ops::param, name) == nullptr || graph.find_leaf(ops::input, name) == nullptr, "Graph '",
            graph.name(), "' has an input '", name, "' already.");
  Graph out = graph.empty_revision();
  for (Node node : graph.nodes()) {
    if (node.op == &ops::param &&
        std::find(names.begin(), names.end(), node.attrs.as<ops::LeafAttrs>().name) != names.end())
      node.op = &ops::input;
    out.append(std::move(node));
  }
  out.set_outputs(graph.outputs());
  out.set_updates(graph.updates());
  return out;
}

}  // namespace rlx::passes
