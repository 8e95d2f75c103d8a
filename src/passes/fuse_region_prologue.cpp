// resize_nearest_2x in front of element-wise work: the region reads the small image itself (spec 20, 1.4.11).
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/regions.h"
#include "passes/rewriter.h"
#include "rlx/ops/resize_nearest_2x.h"

namespace rlx::passes {

void fuse_region_prologue(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    ops::ElementwiseRegionAttrs attrs;
    std::vector<ValueId> inputs = node.inputs;
    if (is_unused(rw, node)) return std::nullopt;
    if (node.op == &ops::elementwise_region) {
      attrs = node.attrs.as<ops::ElementwiseRegionAttrs>();
      if (attrs.prologue != ops::RegionPrologue::kNone) return std::nullopt;
    } else if (is_region_step(node)) {  // alone, it becomes a region of one step
      attrs = region_of({&node}, inputs);
    } else {
      return std::nullopt;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Node& resize = rw.producer(inputs[i]);
      // An image that is broadcast further is not read at half the region's own indices.
      if (resize.op != &ops::resize_nearest_2x || resize.results[0].type.shape != node.results[0].type.shape) continue;
      if (!rw.uses().sole_use(inputs[i], node)) {
        rw.miss(node, "MultiConsumer", "The enlarged image is read elsewhere too, or is an output.");
        continue;
      }
      attrs.prologue = ops::RegionPrologue::kResizeNearest2x;
      attrs.prologue_input = static_cast<int64_t>(i);
      inputs[i] = resize.inputs[0];
      if (!rw.claims(ops::elementwise_region, attrs, types_of(rw, inputs))) return std::nullopt;
      Values operands;
      for (const ValueId id : inputs) operands.push_back(rw.in(id));
      return Values{ops::elementwise_region(operands, attrs)};
    }
    return std::nullopt;
  });
}

}  // namespace rlx::passes
