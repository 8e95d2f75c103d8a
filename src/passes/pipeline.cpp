#include "passes/pipeline.h"

#include "passes/passes.h"

namespace rlx::passes {

// The compiler's table of contents. The order is that of spec 20, 1.2; a pass may stand at several places.
//
// Not here: blocks lower when they are built (step 2); sizes are bound and weights of weights computed once where a
// graph is lowered to steps (steps 4 and 15), since one optimised graph serves many sizes. legalize_broadcast (step 14)
// has nothing to do: every element-wise kernel of the host backends indexes its operands by strides, 0 where they are
// broadcast. A target with kernels that cannot puts it after the regions.
static constexpr Pass kPipeline[] = {
    // Bodies become plain nodes first, so that every later pass sees through them.
    {.name = "inline_custom_fn", .run = inline_custom_fn},
    {.name = "lower_control_flow", .run = lower_control_flow},
    {.name = "eliminate_dead_code", .run = eliminate_dead_code},
    {.name = "fold_constants", .run = fold_constants},
    {.name = "simplify", .run = simplify, .repeat = true},
    {.name = "eliminate_common_subexpressions", .run = eliminate_common_subexpressions},
    // To matmul: the fusions below know no other product.
    {.name = "lower_dot_general", .run = lower_dot_general, .numerics = Numerics::kDecompose},
    {.name = "lower_reduce", .run = lower_reduce, .numerics = Numerics::kReassoc},
    // Before the fusions: what the target cannot run as one op, they see as primitives. Each decomposition consists of
    // ops of a lower rank (layer, block, fused, composite, primitive), so repeating it ends.
    {.name = "decompose_unclaimed", .run = decompose_unclaimed, .numerics = Numerics::kDecompose, .repeat = true},
    // What the decompositions left: constants in another shape, reshapes of reshapes, the same cast twice.
    {.name = "fold_constants", .run = fold_constants},
    {.name = "simplify", .run = simplify, .repeat = true},
    {.name = "eliminate_common_subexpressions", .run = eliminate_common_subexpressions},
    {.name = "eliminate_dead_code", .run = eliminate_dead_code},
};

std::span<const Pass> pipeline() { return kPipeline; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPipeline)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace rlx::passes
