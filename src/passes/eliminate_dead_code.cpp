// What no output and no state update needs goes, unused inputs and params too. States stay: they keep their value
// between runs whether they are read or not.
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

void eliminate_dead_code(Rewriter& rw) {
  const Graph& graph = rw.graph();
  std::vector<bool> live(graph.nodes().size(), false);
  const auto need = [&](ValueId id) { live[static_cast<size_t>(graph.place(id).node)] = true; };
  for (const Output& o : graph.outputs()) need(o.value);
  for (const StateUpdate& u : graph.updates()) need(u.value);
  bool any_dead = false;
  for (size_t i = live.size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (live[i]) {
      for (const ValueId id : node.inputs) need(id);
      continue;
    }
    any_dead |= node.op != &ops::state && !(rw.is_region() && node.op == &ops::input);
  }
  if (any_dead) rw.drop_dead_nodes();
}

}  // namespace rlx::passes
