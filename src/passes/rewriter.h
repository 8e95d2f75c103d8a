// What a pass works with. A pass is void(Rewriter&): it walks the nodes of a graph once and says for some of them which
// values take their place.
//
//   void fuse_add_relu(Rewriter& rw) {
//     rw.for_each([&](const Node& node) -> std::optional<Values> {
//       if (node.op != &ops::relu) return std::nullopt;                      // kept as it is
//       const Node& add = rw.producer(node.inputs[0]);
//       if (add.op != &ops::add) return std::nullopt;
//       if (!rw.uses().sole_use(node.inputs[0], node)) {
//         rw.miss(node, "MultiConsumer", "The sum is read elsewhere too.");
//         return std::nullopt;
//       }
//       return Values{ops::add_relu(rw.in(add.inputs[0]), rw.in(add.inputs[1]))};
//     });
//   }
//
// Patterns are matched backwards on the graph as it was, from the last member, so that what takes its place stands
// there and every operand is already built. Members that nobody reads any more vanish by themselves; they need no care.
// Returning a value that exists already (its operand, an earlier equal node) is as good as returning a new one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "passes/context.h"
#include "passes/uses.h"
#include "rlx/graph.h"

namespace rlx::passes {

// A pattern that almost matched, for the fusion report.
struct Miss {
  std::string pass;
  std::string node;   // its label
  std::string op;     // its op
  std::string guard;  // which condition failed: MultiConsumer
  std::string hint;   // a sentence: why, and what would help
};

// What became of the values of a graph.
class Remap {
 public:
  struct Entry {
    ValueId id = 0;  // 0: it is gone, and nothing computes it any more
    // Not a value of its own any more: it is computed inside the node of `id`.
    bool absorbed = false;
  };
  Entry find(ValueId old) const {
    const auto it = entries_.find(old);
    return it == entries_.end() ? Entry{old, false} : it->second;
  }
  void set(ValueId old, Entry entry) { entries_[old] = entry; }
  // What became of this remap's values after a further rewrite.
  void then(const Graph& first, const Remap& next);

 private:
  std::unordered_map<ValueId, Entry> entries_;  // of values that did not keep their id
};

struct PassStats {
  int64_t replaced = 0;  // nodes whose results were replaced
  int64_t nodes_before = 0, nodes_after = 0;
};

class Rewriter {
 public:
  Rewriter(const Graph& graph, const PassContext& context, std::string_view pass, bool is_region = false);

  // The graph before the pass; it never changes.
  const Graph& graph() const { return before_; }
  const PassContext& context() const { return context_; }
  bool is_region() const { return is_region_; }  // the body of a control-flow op: its inputs are bound by position
  const UseInfo& uses();
  const Node& producer(ValueId old) const { return before_.node_of(old); }
  // A param, a constant, or computed from such alone: fixed once the weights are set.
  bool is_static(ValueId old);
  // Would the target run such a node, which need not exist yet? False where the op does not take these operands.
  bool claims(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs);
  bool claims(const Node& node) const;

  // Calls `visit` for every node in order. nullopt keeps the node (its ids stay, its operands follow); values replace
  // its results, one each, of the same types. At most once per pass.
  void for_each(const std::function<std::optional<Values>(const Node&)>& visit);

  // The graph being built, for builders that need one: constants, symbols.
  Graph& out();
  // What stands for a value of the old graph now. A value that comes later is moved here with what it needs; it must
  // not depend on the node being visited (see can_have).
  Value in(ValueId old);
  Values in_all(const Node& node);  // all operands
  // Has the value been built already, or is it a leaf that can be moved here?
  bool can_have(ValueId old) const;
  // The id that stands for a value now, and the node that computes it now; both build nothing.
  ValueId now(ValueId old) const;
  const Node& producer_now(ValueId old) const;  // valid until a node is built
  // The param of that name: the graph's own, or a new one.
  Value param(const std::string& name, const TensorType& type);

  void miss(const Node& node, std::string_view guard, std::string_view hint);

  // Removes what nobody needs and gives the new revision; nullopt when nothing was replaced.
  std::optional<Graph> finish();
  // For eliminate_dead_code: finish() drops every node whose results are not needed, unused inputs and params too.
  void drop_dead_nodes() { drop_dead_ = true; }

  const Remap& remap() const { return remap_; }
  const PassStats& stats() const { return stats_; }
  const std::vector<Miss>& misses() const { return misses_; }

 private:
  struct Made {                // of a node being built
    int64_t kept_from = -1;    // the old node it is
    int64_t made_for = -1;     // else: the old node it was made for
    int64_t named_after = -1;  // the old node whose name it takes over
  };

  bool started() const { return out_.has_value(); }
  void start();
  void keep(size_t node);
  void pull(ValueId old);
  void replace(const Node& node, const Values& values, size_t first_made);
  std::vector<bool> needed_nodes(const std::vector<Output>& outputs, const std::vector<StateUpdate>& updates);
  Graph rebuild(const std::vector<bool>& needed, std::vector<Output> outputs, std::vector<StateUpdate> updates);
  void fill_remap(const Graph& after);

  const Graph& before_;
  const PassContext& context_;
  std::string pass_;
  bool is_region_;
  bool drop_dead_ = false;
  std::optional<UseInfo> uses_;
  std::vector<bool> static_;                  // by node; empty until asked
  std::optional<SymbolTable> trial_symbols_;  // for types of nodes that may never be built

  // Built only from the first replacement on: a pass that finds nothing costs a walk.
  std::optional<Graph> out_;
  std::vector<Made> made_;  // by node of out_
  std::vector<bool> done_;  // by old node: built or replaced
  std::unordered_map<ValueId, ValueId> map_;
  std::unordered_map<std::string, ValueId> params_;  // by name, as values of out_; filled when first asked
  bool params_known_ = false;
  size_t current_ = 0;
  bool walked_ = false;

  Remap remap_;
  PassStats stats_;
  std::vector<Miss> misses_;
};

}  // namespace rlx::passes
