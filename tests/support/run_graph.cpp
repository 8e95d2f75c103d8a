#include "support/run_graph.h"

#include <functional>

#include "backends/reference/evaluate.h"
#include "rlx/ops/leaves.h"
#include "support/op_cases.h"

namespace rlx::test {

// Is the symbol computed from others, in the graph or in a region?
static bool is_derived(const Graph& graph, uint32_t id) {
  if (graph.symbols().derived().contains(id)) return true;
  for (const Node& node : graph.nodes())
    for (const GraphPtr& body : node.attrs.graphs())
      if (is_derived(*body, id)) return true;
  return false;
}

Outcome run_on_random_data(const Graph& graph, uint64_t seed) {
  DimBinding sizes;
  for (const uint32_t id : graph.dynamic_symbols())
    if (!is_derived(graph, id)) sizes.set(id, 4);
  Graph bound = sizes.empty() ? graph : bind(graph, sizes);
  int updates = 0;
  for (const StateUpdate& u : bound.updates()) bound.output(bound.value(u.value), str("update.", updates++));
  const auto value_of = [&](const Node* leaf) {
    uint64_t hash = seed;
    for (const char c : leaf->attrs.as<ops::LeafAttrs>().name) hash = hash * 31 + static_cast<uint8_t>(c);
    return Rng(hash).tensor(leaf->results[0].type.shape.sizes(), leaf->results[0].type.dtype);
  };
  std::vector<Tensor> inputs;
  NamedTensors params, states;
  for (const Node* leaf : bound.leaves(ops::input)) inputs.push_back(value_of(leaf));
  for (const Node* leaf : bound.leaves(ops::state)) states[leaf->attrs.as<ops::LeafAttrs>().name] = value_of(leaf);
  const std::function<void(const Graph&)> add_params = [&](const Graph& g) {
    for (const Node* leaf : g.leaves(ops::param)) params[leaf->attrs.as<ops::LeafAttrs>().name] = value_of(leaf);
    for (const Node& node : g.nodes())
      for (const GraphPtr& body : node.attrs.graphs()) add_params(*body);
  };
  add_params(bound);
  try {
    return {.values = reference::evaluate(bound, inputs, params, states)};
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kRuntime) throw;
    return {.fails = true};
  }
}

testing::AssertionResult same_bits(const Tensor& actual, const Tensor& expected) {
  if (actual == expected) return testing::AssertionSuccess();
  return near(actual, expected, kExact);
}

}  // namespace rlx::test
