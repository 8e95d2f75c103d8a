// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_arg(LowerCall& call);
void lower_cross_entropy(LowerCall& call);
void lower_cross_entropy_backward(LowerCall& call);
void lower_elementwise(LowerCall& call);
void lower_norm(LowerCall& call);
void lower_norm_backward(LowerCall& call);
void lower_reduce(LowerCall& call);
void lower_residual_ln(LowerCall& call);
void lower_residual_rms_norm(LowerCall& call);
void lower_sample(LowerCall& call);
void lower_scan(LowerCall& call);
void lower_softmax(LowerCall& call);
void lower_topk(LowerCall& call);
bool reduce_supports(const LowerSignature& signature, const Device& device);
bool sample_supports(const LowerSignature& signature, const Device& device);

}  // namespace rlx::webgpu
