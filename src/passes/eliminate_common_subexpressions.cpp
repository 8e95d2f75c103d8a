// Two nodes with the same op, attributes and operands compute the same: the second takes the first one's values. No op
// has side effects; a sample with another seed has other attributes.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h;
}

class Finder {
 public:
  explicit Finder(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    const bool is_constant = node.op == &ops::constant;
    if (node.op->traits.leaf && !is_constant && node.op != &ops::dim_value) return std::nullopt;
    if (node.op->attrs != &attrs_type<NoAttrs> && !is_constant && !node.attrs.graphs().empty()) return std::nullopt;
    std::vector<const Node*>& candidates = seen_[is_constant ? constant_hash(node) : hash(node)];
    for (const Node* earlier : candidates) {
      if (!(is_constant ? same_constant(*earlier, node) : same(*earlier, node))) continue;
      Values values;
      for (const Result& r : earlier->results) values.push_back(rw_.in(r.id));
      return values;
    }
    candidates.push_back(&node);
    return std::nullopt;
  }

 private:
  uint64_t hash(const Node& node) const {
    uint64_t h = reinterpret_cast<uintptr_t>(node.op);
    for (const ValueId id : node.inputs) h = mix(h, rw_.now(id));
    return node.op->attrs == &attrs_type<NoAttrs> ? h : mix(h, node.attrs.hash());
  }

  bool same(const Node& a, const Node& b) const {
    if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.results.size() != b.results.size()) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (rw_.now(a.inputs[i]) != rw_.now(b.inputs[i])) return false;
    for (size_t r = 0; r < a.results.size(); ++r)  // a custom op may declare what it likes
      if (a.results[r].type != b.results[r].type) return false;
    return a.attrs == b.attrs;
  }

  static const Tensor& value_of(const Node& node) { return node.attrs.as<ops::ConstantAttrs>().value; }

  // A few bytes suffice to tell most constants apart; weights of gigabytes are not read for it.
  static uint64_t constant_hash(const Node& node) {
    const Tensor& t = value_of(node);
    const auto bytes = t.bytes();
    uint64_t h = mix(static_cast<uint64_t>(t.dtype()), bytes.size());
    for (size_t i = 0; i < bytes.size() && i < 256; ++i) h = mix(h, static_cast<uint64_t>(bytes[i]));
    return h;
  }

  static bool same_constant(const Node& a, const Node& b) {
    if (a.op != b.op) return false;
    const Tensor &x = value_of(a), &y = value_of(b);
    return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
           (x.bytes().data() == y.bytes().data() || std::equal(x.bytes().begin(), x.bytes().end(), y.bytes().begin()));
  }

  Rewriter& rw_;
  std::unordered_map<uint64_t, std::vector<const Node*>> seen_;  // looked up, never iterated
};

}  // namespace

void eliminate_common_subexpressions(Rewriter& rw) {
  Finder finder(rw);
  rw.for_each([&](const Node& node) { return finder.visit(node); });
}

}  // namespace rlx::passes
