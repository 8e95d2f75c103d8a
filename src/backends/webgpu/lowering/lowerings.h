// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

void lower_batch_region(LowerCall& call);
void lower_concat(LowerCall& call);
void lower_dequant_gather(LowerCall& call);
void lower_dequant_grouped_matmul(LowerCall& call);
void lower_dequant_matmul(LowerCall& call);
void lower_dequant_moe_weights(LowerCall& call);
bool col2im_supports(const LowerSignature& signature, const Device& device);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
bool fused_matmul_bias_act_supports(const LowerSignature& signature, const Device& device);
bool fused_matmul_split_supports(const LowerSignature& signature, const Device& device);
bool grouped_matmul_supports(const LowerSignature& signature, const Device& device);
bool has_elements(const LowerSignature& signature, const Device& device);
bool matmul_int_supports(const LowerSignature& signature, const Device& device);
bool matmul_supports(const LowerSignature& signature, const Device& device);
bool pool_supports(const LowerSignature& signature, const Device& device);
void lower_col2im(LowerCall& call);
void lower_conv(LowerCall& call);
void lower_conv2d_backward_input(LowerCall& call);
void lower_conv2d_backward_weight(LowerCall& call);
void lower_conv_transpose(LowerCall& call);
void lower_deform_conv(LowerCall& call);
void lower_elementwise(LowerCall& call);
void lower_expand(LowerCall& call);
void lower_fused_conv_bias_act(LowerCall& call);
void lower_fused_matmul_bias_act(LowerCall& call);
void lower_fused_matmul_split(LowerCall& call);
void lower_grid_sample(LowerCall& call);
void lower_grouped_matmul(LowerCall& call);
void lower_im2col(LowerCall& call);
void lower_matmul(LowerCall& call);
void lower_matmul_int(LowerCall& call);
void lower_max_pool2d_backward(LowerCall& call);
void lower_narrow(LowerCall& call);
void lower_pool(LowerCall& call);
void lower_pool_max_indices(LowerCall& call);
void lower_resize_nearest_2x(LowerCall& call);
void lower_roi_align(LowerCall& call);
void lower_slice(LowerCall& call);
void lower_softmax(LowerCall& call);
void lower_transpose(LowerCall& call);

}  // namespace rlx::webgpu
