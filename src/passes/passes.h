// Every pass, each in a file of its name; pipeline.cpp puts them in order.
#pragma once

namespace rlx::passes {

class Rewriter;

void auto_mixed_precision(Rewriter& rw);
void decompose_unclaimed(Rewriter& rw);
void eliminate_common_subexpressions(Rewriter& rw);
void eliminate_dead_code(Rewriter& rw);
void fold_constants(Rewriter& rw);
void fold_conv_scale(Rewriter& rw);
void fuse_attention_block(Rewriter& rw);
void fuse_batch_slices(Rewriter& rw);
void fuse_conv_bias_act(Rewriter& rw);
void fuse_matmul_bias_act(Rewriter& rw);
void fuse_quantized_products(Rewriter& rw);
void fuse_region_prologue(Rewriter& rw);
void fuse_residual_norm(Rewriter& rw);
void fuse_shared_input_matmul(Rewriter& rw);
void fuse_swiglu(Rewriter& rw);
void fuse_swiglu_dual_matmul(Rewriter& rw);
void fuse_transformer_layer(Rewriter& rw);
void inline_custom_fn(Rewriter& rw);
void lower_control_flow(Rewriter& rw);
void lower_dot_general(Rewriter& rw);
void lower_reduce(Rewriter& rw);
void mark_elementwise_regions(Rewriter& rw);
void quant_propagate(Rewriter& rw);
void recognize_activations(Rewriter& rw);
void recognize_attention(Rewriter& rw);
void recognize_norms(Rewriter& rw);
void recognize_rope(Rewriter& rw);
void simplify(Rewriter& rw);
void split_matmul(Rewriter& rw);

}  // namespace rlx::passes
