// Where each node of a graph runs, and which of its values need device bytes.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/webgpu/loop_bounds.h"
#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

enum class NodePlace : uint8_t { kSkip, kLeaf, kView, kDevice, kLoop, kHost };

class NodePlaces {
 public:
  // `nested`: a region of a loop, whose inputs and outputs are on the device. `too_large`: nodes whose steps there
  // would see more than the device shows.
  NodePlaces(const Graph& bound, const std::unordered_set<ValueId>& used, const Device& device,
             const CompileOptions& options, bool nested, const std::unordered_set<size_t>& too_large);

  NodePlace of(size_t node) const { return places_[node]; }
  const LoweringRow* row(size_t node) const { return rows_[node]; }
  Loop take_loop(size_t node) { return std::move(loops_.at(node)); }
  bool bounds_loops(ValueId id) const { return bounds_.contains(id); }
  bool needs_device_bytes(ValueId id) { return on_device_.contains(find_group(id)); }

 private:
  ValueId find_group(ValueId id);
  void unite(ValueId a, ValueId b);

  LoopBounds bounds_;
  std::vector<NodePlace> places_;               // by node
  std::vector<const LoweringRow*> rows_;        // by node
  std::unordered_map<size_t, Loop> loops_;      // by node
  std::unordered_map<ValueId, ValueId> group_;  // views with their roots, states with their new values
  std::unordered_set<ValueId> on_device_;       // groups that a kernel touches
};

std::vector<TensorType> input_types(const Graph& graph, const Node& node);
// The part of its first operand that the node's result is, if it is one.
std::optional<ViewOf> find_view(const Graph& bound, const Node& node);

}  // namespace rlx::webgpu
