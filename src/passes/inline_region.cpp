#include "passes/inline_region.h"

#include "passes/passes.h"
#include "rlx/ops/control_flow.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

std::string why_not_inline(const Rewriter& rw, const Graph& body, std::span<const TensorType> inputs) {
  const auto leaves = body.leaves(ops::input);
  RLX_ASSERT(leaves.size() == inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (leaves[i]->results[0].type != inputs[i])
      return str("Input ", i, " of region '", body.name(), "' is ", leaves[i]->results[0].type, ", its operand ",
                 inputs[i], ".");
  const SymbolTable& outer = rw.graph().symbols();
  for (const auto& [id, definition] : body.symbols().derived()) {
    const auto it = outer.derived().find(id);
    if (it == outer.derived().end() || it->second != definition)
      return str("Size ?", id, " of region '", body.name(), "' is not defined likewise in the graph.");
  }
  for (const auto& [id, name] : body.symbols().names())
    if (const std::string* other = outer.find_name(id); other != nullptr && *other != name)
      return str("Symbol ?", id, " of region '", body.name(), "' has another name in the graph.");
  return "";
}

Values inline_region(Rewriter& rw, const Graph& body, std::span<const Value> inputs) {
  Graph& graph = rw.out();
  for (const DimConstraint& c : body.symbols().constraints()) graph.symbols().require_one_or(c.dim, c.one_or);
  std::unordered_map<ValueId, ValueId> map;
  size_t next = 0;
  for (const Node& node : body.nodes()) {
    if (node.op == &ops::input) {
      map[node.results[0].id] = inputs[next++].id();
    } else if (node.op == &ops::param) {
      map[node.results[0].id] = rw.param(node.attrs.as<ops::LeafAttrs>().name, node.results[0].type).id();
    } else {
      std::vector<ValueId> operands;
      std::vector<TensorType> types;
      for (const ValueId id : node.inputs) operands.push_back(map.at(id));
      for (const Result& r : node.results) types.push_back(r.type);
      const Value first = graph.add_node(*node.op, std::move(operands), node.attrs, std::move(types));
      for (size_t r = 0; r < node.results.size(); ++r)
        map[node.results[r].id] = first.result(static_cast<int64_t>(r)).id();
    }
  }
  Values outputs;
  for (const Output& o : body.outputs()) outputs.push_back(graph.value(map.at(o.value)));
  return outputs;
}

// custom_fn is its forward body. The other bodies serve differentiation, which is done by now.
void inline_custom_fn(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op != &ops::custom_fn) return std::nullopt;
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) types.push_back(rw.graph().type(id));
    const Graph& body = *node.attrs.as<ops::CustomFnAttrs>().fwd_body;
    if (const std::string reason = why_not_inline(rw, body, types); !reason.empty()) {
      rw.miss(node, "RegionTypes", reason);
      return std::nullopt;
    }
    const Values operands = rw.in_all(node);
    return inline_region(rw, body, operands);
  });
}

}  // namespace rlx::passes
