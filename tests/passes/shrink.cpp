#include "shrink.h"

#include "passes/rewriter.h"
#include "rlx/ops/leaves.h"
#include "support/pass_context.h"

namespace rlx::test {

namespace {

class Shrinker {
 public:
  Shrinker(Graph graph, const std::function<bool(const Graph&)>& fails) : best_(std::move(graph)), fails_(fails) {}

  Graph run() {
    for (bool again = true; again;) again = fewer_outputs() || fewer_nodes();
    return std::move(best_);
  }

 private:
  bool take(const Graph& candidate) {
    try {
      const Graph small = after_pass(candidate, "eliminate_dead_code");
      if (size(small) >= size(best_) || !fails_(small)) return false;
      best_ = small;
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  // Nodes that compute count double: an input in place of a node is progress.
  static size_t size(const Graph& g) {
    size_t n = g.outputs().size() + g.updates().size();
    for (const Node& node : g.nodes()) n += node.op->traits.leaf ? 1 : 4;
    return n;
  }

  bool fewer_outputs() {
    bool any = false;
    for (size_t i = best_.outputs().size(); i-- > 0 && best_.outputs().size() > 1;) {
      Graph g = best_;
      std::vector<Output> outputs = g.outputs();
      outputs.erase(outputs.begin() + static_cast<int64_t>(i));
      g.set_outputs(outputs);
      any |= take(g);
    }
    for (size_t i = best_.updates().size(); i-- > 0;) {
      Graph g = best_;
      std::vector<StateUpdate> updates = g.updates();
      updates.erase(updates.begin() + static_cast<int64_t>(i));
      g.set_updates(updates);
      any |= take(g);
    }
    return any;
  }

  // Each node by one of its operands of the same type, or by inputs.
  bool fewer_nodes() {
    bool any = false;
    for (size_t i = best_.nodes().size(); i-- > 0;) {
      if (i >= best_.nodes().size() || best_.nodes()[i].op->traits.leaf) continue;
      any |= bypass(i) || by_inputs(i);
    }
    return any;
  }

  bool bypass(size_t index) {
    const Node& node = best_.nodes()[index];
    if (node.results.size() != 1) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (best_.type(node.inputs[k]) == node.results[0].type &&
          replace(index, [&](passes::Rewriter& rw, const Node& n) { return Values{rw.in(n.inputs[k])}; }))
        return true;
    return false;
  }

  bool by_inputs(size_t index) {
    return replace(index, [&](passes::Rewriter& rw, const Node& n) {
      Values values;
      for (const Result& r : n.results) values.push_back(rw.out().input(str("cut", next_input_++), r.type));
      return values;
    });
  }

  bool replace(size_t index, const std::function<Values(passes::Rewriter&, const Node&)>& by) {
    const passes::PassContext context = pass_context();
    passes::Rewriter rw(best_, context, "shrink");
    const Node* target = &best_.nodes()[index];
    rw.for_each([&](const Node& node) { return &node == target ? std::optional(by(rw, node)) : std::nullopt; });
    const std::optional<Graph> after = rw.finish();
    return after && take(*after);
  }

  Graph best_;
  const std::function<bool(const Graph&)>& fails_;
  int next_input_ = 0;
};

}  // namespace

Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails) {
  return Shrinker(std::move(graph), fails).run();
}

}  // namespace rlx::test
