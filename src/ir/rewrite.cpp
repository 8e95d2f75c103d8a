// Rewrites that need no pass: binding of symbols, inlining of a region, decomposition of fused ops.
#include <functional>
#include <unordered_map>

#include "rlx/graph.h"
#include "rlx/ops/leaves.h"

namespace rlx {

Graph bind(const Graph& graph, const DimBinding& binding) {
  const DimBinding sizes = graph.symbols().complete(binding);
  Graph out = graph.empty_revision();
  for (const Node& node : graph.nodes()) {
    Node bound = node;
    try {
      bound.attrs = node.attrs.bind(sizes);
      std::vector<TensorType> inputs, declared;
      for (const ValueId id : node.inputs) inputs.push_back(out.type(id));
      for (const Result& r : node.results) declared.push_back({r.type.shape.bind(sizes), r.type.dtype});
      const Types types = infer_types(*node.op, inputs, bound.attrs, out.symbols(), declared);
      RLX_ASSERT(types.size() == bound.results.size());
      for (size_t i = 0; i < types.size(); ++i) bound.results[i].type = types[i];
    } catch (Error& e) {
      e.add_context(str("binding the sizes of ", graph.label(node.results[0].id), " (", node.op->name, ")"));
      throw;
    }
    out.append(std::move(bound));
  }
  out.set_outputs(graph.outputs());
  out.set_updates(graph.updates());
  verify(out);
  return out;
}

Values inline_graph(Graph& graph, const Graph& body, std::span<const Value> inputs) {
  std::unordered_map<ValueId, ValueId> map;
  size_t next = 0;
  for (const Node& node : body.nodes()) {
    if (node.op == &ops::input) {
      require(next < inputs.size(), "Region '", body.name(), "' has more inputs than the ", inputs.size(), " given.");
      map[node.results[0].id] = inputs[next++].id();
      continue;
    }
    if (node.op == &ops::param) {  // shared with the parent by name
      const std::string& name = node.attrs.as<ops::LeafAttrs>().name;
      const Node* existing = graph.find_leaf(ops::param, name);
      map[node.results[0].id] = existing ? existing->results[0].id : graph.param(name, node.results[0].type).id();
      continue;
    }
    std::vector<ValueId> ids;
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) ids.push_back(map.at(id));
    for (const Result& r : node.results) types.push_back(r.type);
    const Value first = graph.add_node(*node.op, std::move(ids), node.attrs, std::move(types), "", node.origin);
    for (size_t r = 0; r < node.results.size(); ++r)
      map[node.results[r].id] = first.result(static_cast<int64_t>(r)).id();
  }
  require(next == inputs.size(), "Region '", body.name(), "' has ", next, " inputs, not ", inputs.size(), ".");
  Values outputs;
  for (const Output& o : body.outputs()) outputs.push_back(graph.value(map.at(o.value)));
  return outputs;
}

static bool is_chosen(const Graph& graph, const Node& node, const ChooseNode& chosen) {
  std::vector<TensorType> inputs, outputs;
  for (const ValueId id : node.inputs) inputs.push_back(graph.type(id));
  for (const Result& r : node.results) outputs.push_back(r.type);
  return chosen(*node.op, node.attrs, inputs, outputs);
}

// One sweep; sets `changed` when a node was replaced.
static Graph decompose_once(const Graph& graph, const ChooseNode& chosen, bool& changed) {
  Graph out = graph.empty_revision();
  std::unordered_map<ValueId, ValueId> map;
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    for (ValueId& id : copy.inputs) id = map.at(id);
    if (!node.attrs.graphs().empty())
      copy.attrs = node.attrs.map_graphs(
          [&](const GraphPtr& g) { return std::make_shared<const Graph>(decompose_once(*g, chosen, changed)); });
    if (node.op->decompose == nullptr || !is_chosen(graph, node, chosen)) {
      for (const Result& r : node.results) map[r.id] = r.id;
      out.append(std::move(copy));
      continue;
    }
    changed = true;
    Values inputs;
    for (const ValueId id : copy.inputs) inputs.push_back(out.value(id));
    const Values results = node.op->decompose(DecomposeCall(inputs, copy.attrs));
    RLX_ASSERT(results.size() == node.results.size());
    for (size_t r = 0; r < results.size(); ++r) map[node.results[r].id] = results[r].id();
  }
  std::vector<Output> outputs = graph.outputs();
  for (Output& o : outputs) o.value = map.at(o.value);
  std::vector<StateUpdate> updates = graph.updates();
  for (StateUpdate& u : updates) u = {map.at(u.state), map.at(u.value)};
  out.set_outputs(std::move(outputs));
  out.set_updates(std::move(updates));
  return out;
}

Graph decompose(const Graph& graph, const ChooseNode& chosen) {
  Graph out = graph;
  for (bool changed = true; changed;) {
    changed = false;
    Graph next = decompose_once(out, chosen, changed);
    if (changed) out = std::move(next);
  }
  return out;
}

}  // namespace rlx
