// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

void lower_dequant_gather(LowerCall& call);
void lower_dequant_grouped_matmul(LowerCall& call);
void lower_dequant_matmul(LowerCall& call);
void lower_dequant_moe_weights(LowerCall& call);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_elementwise(LowerCall& call);
void lower_softmax(LowerCall& call);

}  // namespace rlx::webgpu
