#include "passes/uses.h"

namespace rlx::passes {

UseInfo::UseInfo(const Graph& graph) : graph_(graph) {
  const std::vector<Node>& nodes = graph.nodes();
  first_value_.reserve(nodes.size());
  size_t values = 0;
  for (const Node& node : nodes) {
    first_value_.push_back(values);
    values += node.results.size();
  }
  edges_.assign(values, 0);
  is_output_.assign(values, false);

  // Readers in node order, once each; `last` remembers the node that read a value most recently.
  std::vector<std::pair<size_t, int64_t>> reads;
  std::vector<int64_t> last(values, -1);
  std::vector<size_t> counts(values, 0);
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const ValueId id : nodes[n].inputs) {
      const size_t v = at(id);
      ++edges_[v];
      if (last[v] == static_cast<int64_t>(n)) continue;
      last[v] = static_cast<int64_t>(n);
      ++counts[v];
      reads.emplace_back(v, static_cast<int64_t>(n));
    }
  first_.assign(values + 1, 0);
  for (size_t v = 0; v < values; ++v) first_[v + 1] = first_[v] + counts[v];
  consumers_.resize(reads.size());
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (const auto& [v, n] : reads) consumers_[next[v]++] = n;

  const auto take = [&](ValueId id) {
    ++edges_[at(id)];
    is_output_[at(id)] = true;
  };
  for (const Output& o : graph.outputs()) take(o.value);
  for (const StateUpdate& u : graph.updates()) take(u.value);
}

bool UseInfo::sole_use(ValueId id, const Node& by) const { return sole_consumer(id) == &by; }

const Node* UseInfo::sole_consumer(ValueId id) const {
  const auto readers = consumers(id);
  if (readers.size() != 1 || is_output(id)) return nullptr;
  return &graph_.nodes()[static_cast<size_t>(readers[0])];
}

}  // namespace rlx::passes
