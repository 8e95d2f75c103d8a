// An op that the target has no kernel for is replaced by its definition, where it has one; else it runs on the host.
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace rlx::passes {

void decompose_unclaimed(Rewriter& rw) {
  if (!rw.context().claims) return;
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op->decompose == nullptr || rw.claims(node)) return std::nullopt;
    const Values operands = rw.in_all(node);
    return node.op->decompose(DecomposeCall(operands, node.attrs));
  });
}

}  // namespace rlx::passes
