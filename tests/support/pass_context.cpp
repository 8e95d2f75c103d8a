#include "support/pass_context.h"

#include "backends/reference/evaluate.h"

namespace rlx::test {

passes::PassContext pass_context(std::set<std::string, std::less<>> unclaimed) {
  passes::PassContext context;
  context.claims = [unclaimed = std::move(unclaimed)](const passes::Signature& s) {
    return !unclaimed.contains(s.op.name);
  };
  context.evaluate = [](const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
    return reference::evaluate_op(op, inputs, attrs);
  };
  return context;
}

Graph after_pass(const Graph& graph, std::string_view pass, const passes::PassContext& context) {
  const passes::Pass* found = passes::find_pass(pass);
  require(found != nullptr, "There is no pass '", pass, "'.");
  passes::PassRecord record;
  return passes::run_pass(graph, *found, context, record).value_or(graph);
}

}  // namespace rlx::test
