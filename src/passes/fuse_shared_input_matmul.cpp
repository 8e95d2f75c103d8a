// Several products of one value: one product with the weights side by side, and a slice for each (spec 20, 1.4.9). The
// slices are free only where split_matmul can turn product and slices into one node that writes every part, so that is
// what the target must claim.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/fused_matmul.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/narrow.h"

namespace rlx::passes {

namespace {

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {
    collect();
    for (const auto& [key, group] : groups_)
      if (is_worth_it(group))
        for (const Node* member : group) group_of_[member] = &group;
  }

  std::optional<Values> visit(const Node& node) {
    const auto it = group_of_.find(&node);
    if (it == group_of_.end()) return std::nullopt;
    const Group& group = *it->second;
    // The first member stands before every reader of any; the weights depend on nothing but weights.
    if (&node == group[0]) build(group);
    return Values{rw_.out().value(parts_.at(&node))};
  }

 private:
  using Group = std::vector<const Node*>;  // in node order
  struct Key {
    ValueId x = 0;
    bool biased = false;
    auto operator<=>(const Key&) const = default;
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }
  int64_t columns(const Node* member) const { return last_dim(member->results[0].type).value(); }

  void collect() {
    for (const Node& node : rw_.graph().nodes()) {
      const auto linear = as_linear(rw_, node);
      if (!linear || linear->activation != ops::ActivationKind::kNone) continue;
      if (!type(linear->w).dim(1).is_static() || type(linear->w).dim(1).is(0)) continue;
      // A product of weights alone is computed once.
      if (is_unused(rw_, node) || rw_.is_static(linear->x)) continue;
      if (!rw_.is_static(linear->w) || (linear->bias && !rw_.is_static(*linear->bias))) continue;
      groups_[{linear->x, linear->bias.has_value()}].push_back(&node);
    }
  }

  // One wide product beats narrow ones that leave tiles half empty, and wide ones that all read x again; in between,
  // where the sum is less than two tiles but a member more than one, nothing is gained.
  bool is_worth_it(const Group& group) const {
    if (group.size() < 2) return false;
    const int64_t tile = rw_.context().limits.matmul_tile;
    int64_t sum = 0, widest = 0;
    std::vector<Dim> widths;
    for (const Node* member : group) {
      sum = checked_add(sum, columns(member));
      widest = std::max(widest, columns(member));
      widths.push_back(columns(member));
    }
    if (sum < 2 * tile && widest > tile) return false;
    const auto linear = as_linear(rw_, *group[0]);
    const TensorType &x = type(linear->x), &w = type(linear->w);
    const TensorType types[] = {x, {{w.dim(0), sum}, w.dtype}, {{sum}, w.dtype}};
    return rw_.claims(ops::fused_matmul_split, ops::FusedMatmulSplitAttrs{.widths = widths}, types);
  }

  void build(const Group& group) {
    Values weights, biases;
    Value x = rw_.in(as_linear(rw_, *group[0])->x);
    for (const Node* member : group) {
      const auto linear = as_linear(rw_, *member);
      weights.push_back(rw_.in(linear->w));
      if (linear->bias) biases.push_back(rw_.in(*linear->bias));
    }
    const Value w = ops::concat(weights, {.axis = 1});
    const Value all =
        biases.empty() ? ops::matmul(x, w) : ops::fused_matmul_bias_act(x, w, ops::concat(biases, {.axis = 0}));
    int64_t start = 0;
    for (const Node* member : group) {
      parts_[member] = ops::narrow(all, {.axis = -1, .start = start, .len = columns(member)}).id();
      start += columns(member);
    }
  }

  Rewriter& rw_;
  std::map<Key, Group> groups_;
  std::unordered_map<const Node*, const Group*> group_of_;  // of the groups that are merged; looked up only
  std::unordered_map<const Node*, ValueId> parts_;
};

}  // namespace

void fuse_shared_input_matmul(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
