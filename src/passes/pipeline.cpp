#include "passes/pipeline.h"

#include "passes/passes.h"

namespace rlx::passes {

// The compiler's table of contents. The order is that of spec 20, 1.2; a pass may stand at several places.
//
// Not here: blocks lower when they are built (step 2); sizes are bound and weights of weights computed once where a
// graph is lowered to steps (steps 4 and 15), since one optimised graph serves many sizes. legalize_broadcast (step 14)
// has nothing to do: every element-wise kernel of the host backends indexes its operands by strides, 0 where they are
// broadcast. A target with kernels that cannot puts it after the regions.
// unfuse_elementwise_regions (1.4.11) and lower_logical_kernels (1.4.15) are decompose_unclaimed: an op's decomposition
// is its unfused form.
static constexpr Pass kPipeline[] = {
    // Bodies become plain nodes first, so that every later pass sees through them.
    {.name = "inline_custom_fn", .run = inline_custom_fn},
    {.name = "lower_control_flow", .run = lower_control_flow},
    {.name = "eliminate_dead_code", .run = eliminate_dead_code},
    // Before constants are folded: weights must still be codes.
    {.name = "fuse_quantized_products", .run = fuse_quantized_products, .numerics = Numerics::kReassoc},
    {.name = "fold_constants", .run = fold_constants},
    {.name = "simplify", .run = simplify, .repeat = true},
    {.name = "eliminate_common_subexpressions", .run = eliminate_common_subexpressions},
    // To matmul: the fusions below know no other product.
    {.name = "lower_dot_general", .run = lower_dot_general, .numerics = Numerics::kDecompose},
    {.name = "lower_reduce", .run = lower_reduce, .numerics = Numerics::kReassoc},
    {.name = "quant_propagate",
     .run = quant_propagate,
     .numerics = Numerics::kReassoc,
     .wanted = [](const PassContext& c) { return c.options.quant_propagate; }},
    // Before the fusions: what the target cannot run as one op, they see as primitives. Each decomposition consists of
    // ops of a lower rank (layer, block, fused, composite, primitive), so repeating it ends.
    {.name = "decompose_unclaimed", .run = decompose_unclaimed, .numerics = Numerics::kDecompose, .repeat = true},
    // What the decompositions left: constants in another shape, reshapes of reshapes, the same cast twice.
    {.name = "fold_constants", .run = fold_constants},
    {.name = "simplify", .run = simplify, .repeat = true},
    {.name = "eliminate_common_subexpressions", .run = eliminate_common_subexpressions},
    // What models spell with primitives, as the ops that have kernels of their own. After constants are folded and
    // equal
    // nodes are one (a norm reads x - mean twice), and after the decompositions, whose primitives they may take again.
    {.name = "recognize_activations", .run = recognize_activations, .numerics = Numerics::kReassoc},
    {.name = "recognize_norms", .run = recognize_norms, .numerics = Numerics::kReassoc},
    {.name = "recognize_rope", .run = recognize_rope, .numerics = Numerics::kReassoc},
    {.name = "recognize_attention", .run = recognize_attention, .numerics = Numerics::kReassoc},
    {.name = "simplify", .run = simplify, .repeat = true},  // weights in another shape
    // Biases and activations first: what is left of a sum may be a residual, and a gate with a bias carries its silu.
    // Scales and shifts go into the weights first, what is added then is a bias or a residual.
    {.name = "fold_conv_scale", .run = fold_conv_scale, .numerics = Numerics::kReassoc},
    {.name = "fuse_conv_bias_act", .run = fuse_conv_bias_act, .numerics = Numerics::kReassoc},
    {.name = "fuse_matmul_bias_act", .run = fuse_matmul_bias_act, .numerics = Numerics::kReassoc},
    {.name = "fuse_residual_norm", .run = fuse_residual_norm, .numerics = Numerics::kReassoc},
    // Pairs of up and gate before products of one input in general, which would take them too.
    {.name = "fuse_swiglu_dual_matmul", .run = fuse_swiglu_dual_matmul, .numerics = Numerics::kReassoc},
    {.name = "fuse_shared_input_matmul", .run = fuse_shared_input_matmul, .numerics = Numerics::kReassoc},
    {.name = "fuse_swiglu", .run = fuse_swiglu},
    // They match what the fusions above made: one packed projection, its bias, the residual norms.
    {.name = "fuse_attention_block", .run = fuse_attention_block, .numerics = Numerics::kReassoc},
    {.name = "fuse_transformer_layer",
     .run = fuse_transformer_layer,
     .numerics = Numerics::kReassoc,
     .wanted = [](const PassContext& c) { return c.options.fuse_layers; }},
    // After the patterns, which casts would hide; before the regions, which casts can join.
    {.name = "auto_mixed_precision",
     .run = auto_mixed_precision,
     .numerics = Numerics::kLossy,
     .wanted = [](const PassContext& c) { return c.options.precision != PrecisionPolicy::kAlwaysF32; }},
    // After the blocks, which want to see the slices.
    {.name = "split_matmul", .run = split_matmul, .numerics = Numerics::kReassoc},
    // Slices are put together while their work is still single nodes. Regions last: they swallow the adds and
    // activations that every pattern above is made of.
    {.name = "fuse_batch_slices", .run = fuse_batch_slices},
    {.name = "mark_elementwise_regions", .run = mark_elementwise_regions},
    {.name = "fuse_region_prologue", .run = fuse_region_prologue},
    // Weights that the fusions put side by side, where they are constants; biases of zeros.
    {.name = "fold_constants", .run = fold_constants},
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
