#include "passes/regions.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/ops/cast.h"

namespace rlx::passes {

bool is_region_step(const Node& node) {
  return node.op->traits.elementwise && node.results.size() == 1 &&
         (node.op == &ops::cast || node.op->attrs == &attrs_type<NoAttrs>);
}

ops::ElementwiseRegionAttrs region_of(std::vector<const Node*> members, std::vector<ValueId>& inputs) {
  ops::ElementwiseRegionAttrs attrs;
  std::unordered_map<ValueId, ChainOperand> known;  // looked up only
  inputs.clear();
  for (const Node* node : members) {
    ChainStep step{.op = node->op};
    if (node->op == &ops::cast) step.to = node->attrs.as<ops::CastAttrs>().to;
    for (const ValueId id : std::vector<ValueId>(node->inputs)) {
      const auto [it, is_new] = known.emplace(id, ChainOperand{false, static_cast<int32_t>(inputs.size())});
      if (is_new) inputs.push_back(id);
      step.operands.push_back(it->second);
    }
    known[node->results[0].id] = {true, static_cast<int32_t>(attrs.chain.size())};
    attrs.chain.push_back(std::move(step));
  }
  attrs.num_inputs = static_cast<int64_t>(inputs.size());
  return attrs;
}

}  // namespace rlx::passes
