#include "runtime/inspect.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/text_table.h"
#include "rlx/ops/leaves.h"

namespace rlx {

namespace {

constexpr int64_t kNodesNamed = 5, kElementsAround = 3;

bool is_watched(const Node& node) { return node.op != &ops::param && node.op != &ops::constant; }

int64_t first_bad(const Tensor& t) {
  if (!is_float(t.dtype())) return -1;
  for (int64_t i = 0; i < t.num_elements(); ++i)
    if (!std::isfinite(t.at(i))) return i;
  return -1;
}

// Not results that nobody reads: they are not computed otherwise, and that they are may decide whether an active extent
// holds.
template <class F>
void for_watched(const Graph& graph, const F& f) {
  std::unordered_set<ValueId> read;
  for (const Node& node : graph.nodes()) read.insert(node.inputs.begin(), node.inputs.end());
  for (const Output& o : graph.outputs()) read.insert(o.value);
  for (const StateUpdate& u : graph.updates()) read.insert(u.value);
  size_t index = 0;
  for (const Node& node : graph.nodes()) {
    if (!is_watched(node)) continue;
    for (const Result& r : node.results)
      if (read.contains(r.id) && !f(node, r, index++)) return;
  }
}

}  // namespace

std::vector<ValueId> watched_values(const Graph& graph) {
  std::vector<ValueId> ids;
  for_watched(graph, [&](const Node&, const Result& r, size_t) {
    ids.push_back(r.id);
    return true;
  });
  return ids;
}

Graph with_watched_outputs(const Graph& graph) {
  Graph out = graph;
  std::vector<Output> outputs = graph.outputs();
  for (const ValueId id : watched_values(graph)) outputs.push_back({str("watched ", id), id});
  out.set_outputs(std::move(outputs));
  return out;
}

std::optional<NonFiniteNode> first_non_finite(const Graph& graph, const WatchedValue& value) {
  NonFiniteNode found;
  bool any = false;
  for_watched(graph, [&](const Node& node, const Result& r, size_t index) {
    const Tensor t = value(index);
    const int64_t at = first_bad(t);
    if (at < 0) {
      if (!is_float(t.dtype()) || t.num_elements() == 0) return true;
      found.last_finite_node = graph.label(r.id);
      found.last_finite_low = found.last_finite_high = t.at(0);
      for (int64_t i = 1; i < t.num_elements(); ++i) {
        found.last_finite_low = std::min(found.last_finite_low, t.at(i));
        found.last_finite_high = std::max(found.last_finite_high, t.at(i));
      }
      return true;
    }
    any = true;
    found.node = graph.label(r.id);
    found.op = node.op->name;
    found.origin = node.origin;
    found.element = at;
    found.value = t.at(at);
    for (int64_t i = 0; i < t.num_elements(); ++i) found.count += std::isfinite(t.at(i)) ? 0 : 1;
    return false;
  });
  return any ? std::optional(found) : std::nullopt;
}

std::string nan_text(const Graph& graph, const WatchedValue& value) {
  std::string out;
  int64_t named = 0;
  for_watched(graph, [&](const Node& node, const Result& r, size_t index) {
    const Tensor t = value(index);
    const int64_t at = first_bad(t);
    if (at < 0) return true;
    int64_t count = 0;
    for (int64_t i = 0; i < t.num_elements(); ++i) count += std::isfinite(t.at(i)) ? 0 : 1;
    std::vector<double> around;
    const int64_t begin = std::max<int64_t>(0, at - kElementsAround);
    for (int64_t i = begin; i < std::min(t.num_elements(), at + kElementsAround + 1); ++i) around.push_back(t.at(i));
    out += str("  ", graph.label(r.id), " (", node.op->name, ", ", r.type, "): ", count, " of ", t.num_elements(),
               " elements are not finite, the first at ", at, "; from ", begin, " on: ", around, "\n");
    return ++named < kNodesNamed;
  });
  return out.empty() ? out : "NaN or infinity, first in:\n" + out;
}

std::string nodes_text(const Graph& graph, const WatchedValue& value, const DebugOptions& options) {
  std::vector<std::vector<std::string>> rows = {{"node", "op", "type", "largest", "not zero"}};
  if (options.dump_flat >= 0) rows[0].push_back(str("[", options.dump_flat, "]"));
  for_watched(graph, [&](const Node& node, const Result& r, size_t index) {
    const Tensor t = value(index);
    double largest = 0;
    int64_t non_zero = 0;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const double x = t.at(i);
      largest = std::isnan(x) || std::isnan(largest) ? x + largest : std::max(largest, std::abs(x));
      non_zero += x != 0 ? 1 : 0;
    }
    rows.push_back({graph.label(r.id), std::string(node.op->name), str(r.type), str(largest), str(non_zero)});
    if (options.dump_flat >= 0)
      rows.back().push_back(options.dump_flat < t.num_elements() ? str(t.at(options.dump_flat)) : "-");
    return options.dump_limit == 0 || static_cast<int64_t>(rows.size()) <= options.dump_limit;
  });
  return "values:\n" + table_text(rows);
}

}  // namespace rlx
