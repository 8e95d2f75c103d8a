// The sizes of symbols from the inputs of a run (spec 10, 2.3).
#include <algorithm>
#include <cmath>

#include "rlx/ops/leaves.h"
#include "rlx/runtime.h"

namespace rlx {

namespace {

std::string symbol_text(const Graph& graph, uint32_t id) {
  const std::string* name = graph.symbols().find_name(id);
  return name ? str("?", id, " ('", *name, "')") : str("?", id);
}

void set_once(const Graph& graph, DimBinding& binding, uint32_t id, int64_t size, const std::string& input) {
  const auto existing = binding.find(id);
  require(!existing || *existing == size, "Symbol ", symbol_text(graph, id), " is ", existing.value_or(0), " and ",
          size, " at once; the second size comes from input '", input, "'.");
  binding.set(id, size);
}

}  // namespace

DimBinding infer_binding(const Graph& graph, const std::map<std::string, std::vector<int64_t>>& input_sizes) {
  DimBinding binding;
  const auto& derived = graph.symbols().derived();
  for (const Node* node : graph.leaves(ops::input)) {
    const std::string& name = node->attrs.as<ops::LeafAttrs>().name;
    const auto it = input_sizes.find(name);
    if (it == input_sizes.end()) continue;
    const Shape& shape = node->results[0].type.shape;
    const std::vector<int64_t>& sizes = it->second;
    require(static_cast<int64_t>(sizes.size()) == shape.rank(), "Input '", name, "' has sizes ", sizes,
            ", its declaration ", shape, ".");
    for (int64_t i = 0; i < shape.rank(); ++i) {
      const Dim& d = shape[i];
      const int64_t size = sizes[static_cast<size_t>(i)];
      if (d.is_static()) {
        require(d.is(size), "Input '", name, "' has sizes ", sizes, ", its declaration ", shape, ".");
        continue;
      }
      if (derived.contains(d.symbol_id())) continue;  // checked below, when its parts are known
      const int64_t rest = size - d.offset();
      require(rest >= 0 && rest % d.scale() == 0, "Size (", size, ") of axis ", i, " of input '", name, "' is not ", d,
              " for any size of ", symbol_text(graph, d.symbol_id()), ".");
      set_once(graph, binding, d.symbol_id(), rest / d.scale(), name);
    }
  }
  const DimBinding complete = graph.symbols().complete(binding);
  for (const Node* node : graph.leaves(ops::input)) {
    const auto it = input_sizes.find(node->attrs.as<ops::LeafAttrs>().name);
    if (it == input_sizes.end()) continue;
    const Shape bound = node->results[0].type.shape.bind(complete);
    for (int64_t i = 0; i < bound.rank(); ++i)
      require(!bound[i].is_static() || bound[i].is(it->second[static_cast<size_t>(i)]), "Size (",
              it->second[static_cast<size_t>(i)], ") of axis ", i, " of input '", it->first, "' is not ",
              node->results[0].type.shape[i], " (", bound[i], ").");
  }
  return binding;
}

DimBinding infer_binding_from_counts(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& counts) {
  DimBinding binding;
  for (const Node* node : graph.leaves(ops::input)) {
    const std::string& name = node->attrs.as<ops::LeafAttrs>().name;
    const auto it = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == name; });
    if (it == counts.end()) continue;
    const Shape& shape = node->results[0].type.shape;
    const int64_t count = it->second;
    int64_t known = 1;
    std::vector<Dim> unknown;
    for (const Dim& d : shape) {
      if (d.is_static())
        known = checked_mul(known, d.value());
      else
        unknown.push_back(d);
    }
    if (unknown.empty()) {
      require(count == known, "Input '", name, "' has ", count, " elements, its declaration ", shape, " has ", known,
              ".");
      continue;
    }
    require(known > 0, "Input '", name, "' of shape ", shape, " has no elements, so its sizes cannot be inferred.");
    require(count % known == 0, "Input '", name, "' has ", count, " elements, not a multiple of ", known,
            " as its declaration ", shape, " demands.");
    int64_t size = count / known;
    if (unknown.size() == 2 && unknown[0] == unknown[1]) {
      auto root = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(size))));
      require(root * root == size, "Input '", name, "' of shape ", shape, " has ", count,
              " elements, which is not a square times ", known, ".");
      size = root;
    } else {
      require(unknown.size() == 1, "Input '", name, "' of shape ", shape, " has ", unknown.size(),
              " unknown sizes; pass shapes or an explicit binding.");
    }
    const Dim& d = unknown[0];
    const int64_t rest = size - d.offset();
    require(rest >= 0 && rest % d.scale() == 0, "Size (", size, ") of input '", name, "' is not ", d,
            " for any size of ", symbol_text(graph, d.symbol_id()), ".");
    set_once(graph, binding, d.symbol_id(), rest / d.scale(), name);
  }
  graph.symbols().complete(binding);  // constraints and derived sizes hold
  return binding;
}

}  // namespace rlx
