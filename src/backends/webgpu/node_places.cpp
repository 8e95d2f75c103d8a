#include "backends/webgpu/node_places.h"

#include <algorithm>

#include "backends/webgpu/lower_loop.h"
#include "backends/webgpu/memory.h"
#include "backends/webgpu/split_weights.h"
#include "rlx/ops/leaves.h"

namespace rlx::webgpu {

std::vector<TensorType> input_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (const ValueId id : node.inputs) types.push_back(graph.type(id));
  return types;
}

std::optional<ViewOf> find_view(const Graph& bound, const Node& node) {
  if (node.op->view == nullptr) return std::nullopt;
  SymbolTable symbols = bound.symbols();
  const std::vector<TensorType> types = input_types(bound, node);
  // F64 lies on the host alone: its bytes are nobody else's.
  if ((types[0].dtype == DType::F64) != (node.results[0].type.dtype == DType::F64)) return std::nullopt;
  return node.op->view(InferCall(*node.op, types, node.attrs, symbols));
}

NodePlaces::NodePlaces(const Graph& bound, const std::unordered_set<ValueId>& used, const Device& device,
                       const CompileOptions& options, bool nested, const std::unordered_set<size_t>& too_large)
    : bounds_(bound) {
  const auto& nodes = bound.nodes();
  places_.resize(nodes.size(), NodePlace::kSkip);
  rows_.resize(nodes.size());
  std::unordered_set<ValueId> of_weights;  // what depends on weights alone
  std::unordered_set<ValueId> on_host;     // what the host has before a run
  const int64_t visible = visible_bytes(limits_for(device, options));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    bool needed = node.op == &ops::input || node.op == &ops::state;
    for (const Result& r : node.results) needed |= used.contains(r.id);
    if (!needed) continue;
    if (node.op->traits.leaf) {
      places_[i] = NodePlace::kLeaf;
      if (node.op == &ops::param || node.op == &ops::constant) of_weights.insert(node.results[0].id);
      if (node.op != &ops::state && !nested) on_host.insert(node.results[0].id);
      continue;
    }
    const bool is_once = node.attrs.graphs().empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                                                    [&](ValueId v) { return of_weights.contains(v); });
    if (is_once)
      for (const Result& r : node.results) of_weights.insert(r.id);
    const std::vector<TensorType> types = input_types(bound, node);
    std::vector<TensorType> results;
    for (const Result& r : node.results) results.push_back(r.type);
    rows_[i] = find_lowering({*node.op, node.attrs, types, results}, device);
    const bool is_known =
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return on_host.contains(v); });
    if (too_large.contains(i)) {
      places_[i] = NodePlace::kHost;
      continue;
    }
    if (find_view(bound, node)) {
      places_[i] = NodePlace::kView;
      if (is_known) on_host.insert(node.results[0].id);
      unite(node.inputs[0], node.results[0].id);
      continue;
    }
    places_[i] = rows_[i] ? NodePlace::kDevice : NodePlace::kHost;
    // A number of iterations: in 64 bits, and the host, which drives loops, need not ask for it.
    if (is_known && !is_once && !options.webgpu.no_host_steps && node.attrs.graphs().empty() &&
        bounds_.leads_to_some(node)) {
      places_[i] = NodePlace::kHost;
      for (const Result& r : node.results) on_host.insert(r.id);
      continue;
    }
    // What no binding holds, the host computes or reads. Of a large weight, others have taken parts (split_weights.h).
    const auto is_large = [&](const TensorType& t) { return is_too_large(t, device, visible); };
    if (std::any_of(types.begin(), types.end(), is_large) || std::any_of(results.begin(), results.end(), is_large))
      places_[i] = NodePlace::kHost;
    if (auto loop = node.attrs.graphs().empty() ? std::nullopt : lower_loop(node, device, options)) {
      places_[i] = NodePlace::kLoop;
      loops_.emplace(i, std::move(*loop));
    }
  }
  for (const StateUpdate& u : bound.updates()) unite(u.state, u.value);
  if (nested) {
    for (const Node& node : nodes)
      if (node.op == &ops::input || node.op == &ops::state) on_device_.insert(find_group(node.results[0].id));
    for (const Output& o : bound.outputs()) on_device_.insert(find_group(o.value));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (places_[i] != NodePlace::kDevice && places_[i] != NodePlace::kLoop) continue;
    const bool is_computed = std::ranges::any_of(
        nodes[i].results, [&](const Result& r) { return used.contains(r.id) && r.type.shape.num_elements() != 0; });
    if (!is_computed) continue;  // then no step reads its operands
    for (const ValueId id : nodes[i].inputs) on_device_.insert(find_group(id));
    for (const Result& r : nodes[i].results) on_device_.insert(find_group(r.id));
  }
}

ValueId NodePlaces::find_group(ValueId id) {
  auto it = group_.find(id);
  if (it == group_.end()) return id;
  return it->second = find_group(it->second);
}

void NodePlaces::unite(ValueId a, ValueId b) {
  a = find_group(a);
  b = find_group(b);
  if (a == b) return;
  group_[b] = a;
  if (on_device_.contains(b)) on_device_.insert(a);
}

}  // namespace rlx::webgpu
