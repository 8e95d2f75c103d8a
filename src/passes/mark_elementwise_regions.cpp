// Connected element-wise nodes with one value that others read become one node (spec 20, 1.4.11). The last of the
// fusions: what it takes, no pattern can match any more.
#include <algorithm>
#include <compare>
#include <queue>
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/regions.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/bitwise.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/compare.h"
#include "rlx/ops/unary.h"
#include "rlx/ops/where.h"

namespace rlx::passes {

namespace {

// A region of this many times the limit is looked at as a whole for the best place to cut it; a longer one is cut there
// without looking, so that the work stays linear in the graph.
constexpr int64_t kLookAhead = 2;
// What a size that is not known yet counts as, when two places to cut are compared.
constexpr double kUnknownSize = 1024;

// So cheap that doing it again for every element it is broadcast to costs less than a step of its own.
bool is_cheap(const OpDef& op) {
  static const OpDef* const kCheap[] = {
      &ops::add,     &ops::sub,    &ops::mul,     &ops::max,     &ops::min,   &ops::neg,  &ops::abs,  &ops::relu,
      &ops::cast,    &ops::where,  &ops::eq,      &ops::ne,      &ops::lt,    &ops::le,   &ops::gt,   &ops::ge,
      &ops::bit_and, &ops::bit_or, &ops::bit_xor, &ops::bit_not, &ops::floor, &ops::ceil, &ops::sign, &ops::is_nan};
  return std::find(std::begin(kCheap), std::end(kCheap), &op) != std::end(kCheap);
}

bool same_elements(const Shape& a, const Shape& b) {
  const auto significant = [](const Shape& s) {
    auto first = s.begin();
    while (first != s.end() && first->is(1)) ++first;
    return std::span<const Dim>(first, s.end());
  };
  const auto x = significant(a), y = significant(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

double bytes_of(const TensorType& type) {
  double n = static_cast<double>(size_of(type.dtype));
  for (const Dim& d : type.shape) n *= d.is_static() ? static_cast<double>(d.value()) : kUnknownSize;
  return n;
}

class Marker {
 public:
  explicit Marker(Rewriter& rw) : rw_(rw), nodes_(rw.graph().nodes()) {
    const Limits& limits = rw.context().limits;
    most_steps_ = limits.max_region_steps;
    most_inputs_ = limits.max_region_inputs;
    eligible_.reserve(nodes_.size());
    for (const Node& node : nodes_) eligible_.push_back(is_region_step(node) && claims({&node}));
    taken_.assign(nodes_.size(), false);
    in_set_.assign(nodes_.size(), false);
    // From the end: every reader of a node has been decided before it, so whoever is not taken by then is a tail.
    for (size_t i = nodes_.size(); i-- > 0;)
      if (eligible_[i] && !taken_[i] && !is_unused(rw_, nodes_[i])) mark(i);
  }

  std::optional<Values> visit(const Node& node) {
    const auto it = regions_.find(&node);
    if (it == regions_.end()) return std::nullopt;
    std::vector<ValueId> inputs;
    const auto attrs = region_of(it->second, inputs);
    Values operands;
    for (const ValueId id : inputs) operands.push_back(rw_.in(id));
    return Values{ops::elementwise_region(operands, attrs)};
  }

 private:
  using Set = std::vector<size_t>;  // nodes, the tail first, descending

  void mark(size_t tail) {
    Set set = grow(tail);
    while (!fits(set)) set = cut(set);
    if (!claims(members(set))) set = grow_while_claimed(set);
    if (set.size() < 2) return;
    for (const size_t i : set) taken_[i] = true;
    regions_.emplace(&nodes_[tail], members(set));
  }

  std::vector<const Node*> members(const Set& set) const {
    std::vector<const Node*> out;
    for (auto i = set.rbegin(); i != set.rend(); ++i) out.push_back(&nodes_[*i]);
    return out;
  }

  bool claims(const std::vector<const Node*>& chain) const {
    if (!rw_.context().claims) return true;
    std::vector<ValueId> inputs;
    const auto attrs = region_of(chain, inputs);
    return rw_.claims(ops::elementwise_region, attrs, types_of(rw_, inputs));
  }

  size_t producer(ValueId id) const { return static_cast<size_t>(rw_.graph().place(id).node); }

  bool may_join(size_t i, size_t tail) {
    if (!eligible_[i] || taken_[i]) return false;
    // What is computed from weights alone is computed once, not in every run.
    const ValueId id = nodes_[i].results[0].id, last = nodes_[tail].results[0].id;
    if (rw_.is_static(id) != rw_.is_static(last)) return false;
    return is_cheap(*nodes_[i].op) ||
           same_elements(nodes_[i].results[0].type.shape, nodes_[tail].results[0].type.shape);
  }

  bool read_only_by(size_t i, const std::vector<bool>& set) {
    const ValueId id = nodes_[i].results[0].id;
    const auto readers = rw_.uses().consumers(id);
    return !rw_.uses().is_output(id) &&
           std::all_of(readers.begin(), readers.end(), [&](int64_t r) { return set[static_cast<size_t>(r)]; });
  }

  // Everything that only the tail needs, directly or through others of the set. Nodes are decided in descending order:
  // all readers of a node before the node.
  Set grow(size_t tail) {
    Set set = {tail};
    in_set_[tail] = true;
    std::priority_queue<size_t> next;
    const auto push = [&](size_t i) {
      for (const ValueId id : nodes_[i].inputs) next.push(producer(id));
    };
    push(tail);
    size_t last = tail;
    while (!next.empty() && static_cast<int64_t>(set.size()) < kLookAhead * most_steps_) {
      const size_t i = next.top();
      next.pop();
      if (i == last) continue;
      last = i;
      if (!may_join(i, tail) || !read_only_by(i, in_set_)) continue;
      set.push_back(i);
      in_set_[i] = true;
      push(i);
    }
    for (const size_t i : set) in_set_[i] = false;
    return set;
  }

  int64_t num_inputs(const Set& set) const {
    std::vector<ValueId> ids;
    for (const size_t i : set)
      for (const ValueId id : nodes_[i].inputs)
        if (!std::binary_search(set.begin(), set.end(), producer(id), std::greater<>())) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return std::unique(ids.begin(), ids.end()) - ids.begin();
  }

  bool fits(const Set& set) const {
    return set.size() < 2 || (static_cast<int64_t>(set.size()) <= most_steps_ && num_inputs(set) <= most_inputs_);
  }

  // The set without one node and what only that one needs; they become a region of their own later. A cut costs a
  // tensor that is written and read again, so the smallest one is taken; among equals what leaves the least work to be
  // done again for broadcast elements, then what leaves the most, so that regions are full. When no single cut is
  // enough, the one that takes the most away.
  Set cut(const Set& set) {
    struct Cost {
      bool not_enough = true;
      double bytes = 0;
      int64_t repeated = 0, left = 0;
      auto operator<=>(const Cost&) const = default;
    };
    Set best;
    Cost least;
    for (size_t at = 1; at < set.size(); ++at) {
      Set rest = without(set, at);
      const auto left = static_cast<int64_t>(rest.size());
      const double bytes = bytes_of(nodes_[set[at]].results[0].type);
      const Cost cost =
          fits(rest) ? Cost{false, bytes, num_repeated(rest), -left} : Cost{true, static_cast<double>(left), 0, 0};
      if (!best.empty() && cost >= least) continue;
      best = std::move(rest);
      least = cost;
    }
    return best;
  }

  int64_t num_repeated(const Set& set) const {
    const Shape& tail = nodes_[set[0]].results[0].type.shape;
    return std::count_if(set.begin(), set.end(),
                         [&](size_t i) { return !same_elements(nodes_[i].results[0].type.shape, tail); });
  }

  Set without(const Set& set, size_t at) {
    Set rest(set.begin(), set.begin() + static_cast<int64_t>(at)), gone = {set[at]};
    in_set_[set[at]] = true;
    for (size_t i = at + 1; i < set.size(); ++i) {
      const bool goes = read_only_by(set[i], in_set_);
      (goes ? gone : rest).push_back(set[i]);
      if (goes) in_set_[set[i]] = true;
    }
    for (const size_t i : gone) in_set_[i] = false;
    return rest;
  }

  // The target refuses the whole: as much of it, from the tail, as it takes.
  Set grow_while_claimed(const Set& set) {
    Set taken = {set[0]};
    std::vector<bool>& in = in_set_;
    in[set[0]] = true;
    for (size_t i = 1; i < set.size(); ++i) {
      if (!read_only_by(set[i], in)) continue;
      taken.push_back(set[i]);
      if (claims(members(taken)))
        in[set[i]] = true;
      else
        taken.pop_back();
    }
    for (const size_t i : taken) in[i] = false;
    return taken;
  }

  Rewriter& rw_;
  const std::vector<Node>& nodes_;
  int64_t most_steps_ = 0, most_inputs_ = 0;
  std::vector<bool> eligible_, taken_, in_set_;
  std::unordered_map<const Node*, std::vector<const Node*>> regions_;  // by tail; looked up only
};

}  // namespace

void mark_elementwise_regions(Rewriter& rw) {
  Marker marker(rw);
  rw.for_each([&](const Node& node) { return marker.visit(node); });
}

}  // namespace rlx::passes
