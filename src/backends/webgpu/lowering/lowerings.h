// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

void lower_batch_region(LowerCall& call);
void lower_concat(LowerCall& call);
void lower_conv_integer(LowerCall& call);
void lower_decode_float(LowerCall& call);
void lower_dequant_gather(LowerCall& call);
void lower_dequant_grouped_matmul(LowerCall& call);
void lower_dequant_matmul(LowerCall& call);
void lower_dequant_moe_weights(LowerCall& call);
void lower_dequantize(LowerCall& call);
void lower_dequantize_linear(LowerCall& call);
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
void lower_narrow(LowerCall& call);
void lower_resize_nearest_2x(LowerCall& call);
void lower_slice(LowerCall& call);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_encode_float(LowerCall& call);
void lower_fake_quantize(LowerCall& call);
void lower_fake_quantize_backward(LowerCall& call);
void lower_fake_quantize_lsq(LowerCall& call);
void lower_fake_quantize_lsq_backward(LowerCall& call);
void lower_gate(LowerCall& call);
bool gate_supports(const LowerSignature& signature, const Device& device);
void lower_matmul_integer(LowerCall& call);
void lower_q_conv2d(LowerCall& call);
bool q_conv2d_supports(const LowerSignature& signature, const Device& device);
void lower_q_matmul(LowerCall& call);
bool q_matmul_supports(const LowerSignature& signature, const Device& device);
void lower_quantize(LowerCall& call);
void lower_quantize_linear(LowerCall& call);
void lower_softmax(LowerCall& call);
void lower_transpose(LowerCall& call);

}  // namespace rlx::webgpu
