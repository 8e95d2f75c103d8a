// dot_general as transposes, reshapes and one matmul: its definition, which skips the ones that change nothing.
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/dot_general.h"

namespace rlx::passes {

void lower_dot_general(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op != &ops::dot_general) return std::nullopt;
    const Values operands = rw.in_all(node);
    return ops::dot_general.decompose(DecomposeCall(operands, node.attrs));
  });
}

}  // namespace rlx::passes
