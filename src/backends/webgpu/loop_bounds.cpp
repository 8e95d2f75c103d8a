#include "backends/webgpu/loop_bounds.h"

#include <algorithm>

#include "rlx/ops.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kFew = 16;  // elements that the host computes in no time

class Readers {
 public:
  explicit Readers(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes())
      for (size_t k = 0; k < node.inputs.size(); ++k) readers_[node.inputs[k]].emplace_back(&node, k);
    for (const Output& o : graph.outputs()) ++ends_[o.value];
    for (const StateUpdate& u : graph.updates()) ++ends_[u.value];
  }

  // `own_end`: the value may be an output once.
  bool is_bound(ValueId id, bool own_end = false) const {
    const auto ends = ends_.find(id);
    if (ends != ends_.end() && ends->second > (own_end ? 1 : 0)) return false;
    const auto& readers = readers_of(id);
    return std::all_of(readers.begin(), readers.end(), [&](const auto& r) { return takes_bound(*r.first, r.second); });
  }
  bool is_end(ValueId id) const { return ends_.contains(id); }
  const std::vector<std::pair<const Node*, size_t>>& readers_of(ValueId id) const {
    static const std::vector<std::pair<const Node*, size_t>> none;
    const auto it = readers_.find(id);
    return it == readers_.end() ? none : it->second;
  }

  // Does the node only compare operand k with a counter?
  bool takes_bound(const Node& node, size_t k) const {
    if (node.op->view != nullptr && node.results[0].type.dtype == graph_.type(node.inputs[k]).dtype)
      return is_bound(node.results[0].id);
    if (node.op == &ops::elementwise_region) return region_compares(node, k);
    if (node.op == &ops::while_) return loop_compares(node, k);
    return is_compared(node.op, k);
  }

 private:
  // The larger side of a comparison.
  static bool is_compared(const OpDef* op, size_t k) {
    return k == 1 ? op == &ops::lt || op == &ops::le : op == &ops::gt || op == &ops::ge;
  }

  static bool region_compares(const Node& node, size_t k) {
    const auto& attrs = node.attrs.as<ops::ElementwiseRegionAttrs>();
    for (const ChainStep& step : attrs.chain)
      for (size_t i = 0; i < step.operands.size(); ++i)
        if (!step.operands[i].is_step && step.operands[i].index == static_cast<int64_t>(k) && !is_compared(step.op, i))
          return false;
    return true;
  }

  // The condition compares it; the body hands it on as it is.
  bool loop_compares(const Node& node, size_t k) const {
    const auto& attrs = node.attrs.as<ops::WhileAttrs>();
    const auto of_cond = attrs.cond->leaves(ops::input), of_body = attrs.body->leaves(ops::input);
    const ValueId in_cond = of_cond.at(k)->results[0].id, in_body = of_body.at(k)->results[0].id;
    return attrs.body->outputs()[k].value == in_body && Readers(*attrs.cond).is_bound(in_cond) &&
           Readers(*attrs.body).is_bound(in_body, true) && is_bound(node.results[k].id);
  }

  const Graph& graph_;
  std::unordered_map<ValueId, std::vector<std::pair<const Node*, size_t>>> readers_;
  std::unordered_map<ValueId, int> ends_;
};

}  // namespace

LoopBounds::LoopBounds(const Graph& graph) {
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == &ops::while_; })) return;
  const Readers readers(graph);
  const auto is_small = [](const TensorType& t) { return t.shape.is_static() && t.shape.num_elements() <= kFew; };
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (node->op == &ops::while_) continue;
    for (const Result& r : node->results) {
      const auto& list = readers.readers_of(r.id);
      if (list.empty() || !is_small(r.type) || readers.is_end(r.id)) continue;
      const bool is_bound = r.type.dtype == DType::I64 && readers.is_bound(r.id);
      if (is_bound) bounds_.insert(r.id);
      if (is_bound || std::all_of(list.begin(), list.end(), [&](const auto& reader) {
            return (r.type.dtype == DType::I64 && readers.takes_bound(*reader.first, reader.second)) ||
                   leads_to_some(*reader.first);
          }))
        parts_.insert(r.id);
    }
  }
}

bool LoopBounds::leads_to_some(const Node& node) const {
  return node.op != &ops::while_ && !node.results.empty() &&
         std::all_of(node.results.begin(), node.results.end(), [&](const Result& r) { return parts_.contains(r.id); });
}

}  // namespace rlx::webgpu
