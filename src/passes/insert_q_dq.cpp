#include <algorithm>
#include <unordered_map>

#include "passes/quantize_graph.h"

namespace rlx::passes {

Graph insert_q_dq(const Graph& graph, std::span<const QuantTap> taps) {
  std::unordered_map<std::string, const QuantTap*> by_name;  // looked up only
  for (const QuantTap& tap : taps)
    require(!tap.node.empty() && by_name.emplace(tap.node, &tap).second, "Node '", tap.node, "' is tapped twice.");
  Graph out = graph.empty_revision();
  std::unordered_map<ValueId, ValueId> rounded;
  size_t found = 0;
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    for (ValueId& id : copy.inputs)
      if (const auto it = rounded.find(id); it != rounded.end()) id = it->second;
    out.append(std::move(copy));
    const auto tap = by_name.find(node.name);
    if (node.name.empty() || tap == by_name.end()) continue;
    ++found;
    require(node.results[0].type.dtype == DType::F32, "Tapped value '", node.name, "' is ", node.results[0].type.dtype,
            ", not f32.");
    try {
      const ops::QuantizeAttrs& attrs = tap->second->attrs;
      const Value q = ops::quantize(out.value(node.results[0].id), attrs);
      rounded[node.results[0].id] = ops::dequantize(q, attrs).id();
    } catch (Error& e) {
      e.add_context(str("quantising '", node.name, "'"));
      throw;
    }
  }
  if (found < taps.size())
    for (const QuantTap& tap : taps)
      require(std::any_of(graph.nodes().begin(), graph.nodes().end(),
                          [&](const Node& node) { return node.name == tap.node; }),
              "Graph '", graph.name(), "' has no node '", tap.node, "' to quantise.");
  const auto now = [&](ValueId id) {
    const auto it = rounded.find(id);
    return it == rounded.end() ? id : it->second;
  };
  std::vector<Output> outputs = graph.outputs();
  for (Output& o : outputs) o.value = now(o.value);
  std::vector<StateUpdate> updates = graph.updates();
  for (StateUpdate& u : updates) u.value = now(u.value);
  out.set_outputs(std::move(outputs));
  out.set_updates(std::move(updates));
  return out;
}

}  // namespace rlx::passes
