// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

void lower_arg(LowerCall& call);
bool attention_supports(const LowerSignature& signature, const Device& device);
void lower_attention(LowerCall& call);
void lower_axial_rope2d(LowerCall& call);
void lower_batch_region(LowerCall& call);
bool col2im_supports(const LowerSignature& signature, const Device& device);
void lower_col2im(LowerCall& call);
void lower_concat(LowerCall& call);
void lower_conv(LowerCall& call);
void lower_conv2d_backward_input(LowerCall& call);
void lower_conv2d_backward_weight(LowerCall& call);
void lower_conv_transpose(LowerCall& call);
void lower_cross_entropy(LowerCall& call);
void lower_cross_entropy_backward(LowerCall& call);
void lower_deform_conv(LowerCall& call);
void lower_dequant_gather(LowerCall& call);
void lower_dequant_grouped_matmul(LowerCall& call);
void lower_dequant_matmul(LowerCall& call);
void lower_dequant_moe_weights(LowerCall& call);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_elementwise(LowerCall& call);
void lower_expand(LowerCall& call);
void lower_fused_conv_bias_act(LowerCall& call);
bool fused_matmul_bias_act_supports(const LowerSignature& signature, const Device& device);
void lower_fused_matmul_bias_act(LowerCall& call);
bool fused_matmul_split_supports(const LowerSignature& signature, const Device& device);
void lower_fused_matmul_split(LowerCall& call);
bool fused_swiglu_supports(const LowerSignature& signature, const Device& device);
void lower_fused_swiglu(LowerCall& call);
bool gated_delta_net_supports(const LowerSignature& signature, const Device& device);
void lower_gated_delta_net(LowerCall& call);
void lower_gather(LowerCall& call);
void lower_gather_backward(LowerCall& call);
void lower_gather_elements(LowerCall& call);
void lower_gather_nd(LowerCall& call);
void lower_grid_sample(LowerCall& call);
bool grouped_matmul_supports(const LowerSignature& signature, const Device& device);
void lower_grouped_matmul(LowerCall& call);
bool has_elements(const LowerSignature& signature, const Device& device);
void lower_im2col(LowerCall& call);
void lower_kv_append(LowerCall& call);
bool matmul_supports(const LowerSignature& signature, const Device& device);
void lower_matmul(LowerCall& call);
bool matmul_int_supports(const LowerSignature& signature, const Device& device);
void lower_matmul_int(LowerCall& call);
void lower_max_pool2d_backward(LowerCall& call);
void lower_narrow(LowerCall& call);
void lower_norm(LowerCall& call);
void lower_norm_backward(LowerCall& call);
void lower_pad(LowerCall& call);
bool pool_supports(const LowerSignature& signature, const Device& device);
void lower_pool(LowerCall& call);
void lower_pool_max_indices(LowerCall& call);
bool reduce_supports(const LowerSignature& signature, const Device& device);
void lower_reduce(LowerCall& call);
void lower_residual_ln(LowerCall& call);
void lower_residual_rms_norm(LowerCall& call);
bool resize_supports(const LowerSignature& signature, const Device& device);
void lower_resize(LowerCall& call);
void lower_resize_nearest_2x(LowerCall& call);
void lower_roi_align(LowerCall& call);
bool rope_supports(const LowerSignature& signature, const Device& device);
void lower_rope(LowerCall& call);
void lower_rope_backward(LowerCall& call);
bool sample_supports(const LowerSignature& signature, const Device& device);
void lower_sample(LowerCall& call);
void lower_scan(LowerCall& call);
void lower_scatter_add(LowerCall& call);
void lower_scatter_elements(LowerCall& call);
void lower_scatter_nd(LowerCall& call);
bool selective_scan_supports(const LowerSignature& signature, const Device& device);
void lower_selective_scan(LowerCall& call);
void lower_slice(LowerCall& call);
void lower_softmax(LowerCall& call);
void lower_topk(LowerCall& call);
void lower_transpose(LowerCall& call);

}  // namespace rlx::webgpu
