// Who reads what: the one answer to "may this value disappear into its reader?" (spec 20, 0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rlx/graph.h"

namespace rlx::passes {

class UseInfo {
 public:
  explicit UseInfo(const Graph& graph);

  // (reader, operand position) pairs, and one for each graph output and state update that takes the value.
  int64_t edges(ValueId id) const { return edges_[at(id)]; }
  // Nodes that read it, by index: ascending, each once.
  std::span<const int64_t> consumers(ValueId id) const {
    const size_t i = at(id);
    return std::span(consumers_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  // Does an output or a state update take it?
  bool is_output(ValueId id) const { return is_output_[at(id)]; }
  // Read by `by` and by nobody else, no output: s * s is a sole use of s.
  bool sole_use(ValueId id, const Node& by) const;
  // The only reader of a value that is no output; null when there are none or several.
  const Node* sole_consumer(ValueId id) const;

 private:
  size_t at(ValueId id) const {
    const ValuePlace p = graph_.place(id);
    return first_value_[static_cast<size_t>(p.node)] + static_cast<size_t>(p.result);
  }

  const Graph& graph_;
  std::vector<size_t> first_value_;  // by node: the number of its result 0 among all values
  std::vector<int64_t> edges_;       // by value, as the next three
  std::vector<bool> is_output_;
  std::vector<size_t> first_;  // where its consumers begin
  std::vector<int64_t> consumers_;
};

}  // namespace rlx::passes
