// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

bool elementwise_supports(const LowerSignature& signature, const Device& device);
bool fused_swiglu_supports(const LowerSignature& signature, const Device& device);
bool resize_supports(const LowerSignature& signature, const Device& device);
void lower_batch_region(LowerCall& call);
void lower_concat(LowerCall& call);
void lower_dequant_gather(LowerCall& call);
void lower_dequant_grouped_matmul(LowerCall& call);
void lower_dequant_matmul(LowerCall& call);
void lower_dequant_moe_weights(LowerCall& call);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_elementwise(LowerCall& call);
void lower_expand(LowerCall& call);
bool fused_matmul_bias_act_supports(const LowerSignature& signature, const Device& device);
void lower_fused_matmul_bias_act(LowerCall& call);
bool fused_matmul_split_supports(const LowerSignature& signature, const Device& device);
void lower_fused_matmul_split(LowerCall& call);
bool grouped_matmul_supports(const LowerSignature& signature, const Device& device);
void lower_grouped_matmul(LowerCall& call);
bool matmul_supports(const LowerSignature& signature, const Device& device);
void lower_matmul(LowerCall& call);
bool matmul_int_supports(const LowerSignature& signature, const Device& device);
void lower_matmul_int(LowerCall& call);
void lower_fused_swiglu(LowerCall& call);
void lower_gather(LowerCall& call);
void lower_gather_backward(LowerCall& call);
void lower_gather_elements(LowerCall& call);
void lower_gather_nd(LowerCall& call);
void lower_kv_append(LowerCall& call);
void lower_narrow(LowerCall& call);
void lower_pad(LowerCall& call);
void lower_resize(LowerCall& call);
void lower_resize_nearest_2x(LowerCall& call);
void lower_scatter_add(LowerCall& call);
void lower_scatter_elements(LowerCall& call);
void lower_scatter_nd(LowerCall& call);
void lower_slice(LowerCall& call);
void lower_softmax(LowerCall& call);
void lower_transpose(LowerCall& call);

}  // namespace rlx::webgpu
