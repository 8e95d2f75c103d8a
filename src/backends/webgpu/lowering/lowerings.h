// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

bool attention_supports(const LowerSignature& signature, const Device& device);
bool elementwise_supports(const LowerSignature& signature, const Device& device);
bool gated_delta_net_supports(const LowerSignature& signature, const Device& device);
bool rope_supports(const LowerSignature& signature, const Device& device);
bool selective_scan_supports(const LowerSignature& signature, const Device& device);
void lower_attention(LowerCall& call);
void lower_axial_rope2d(LowerCall& call);
void lower_elementwise(LowerCall& call);
void lower_gated_delta_net(LowerCall& call);
void lower_rope(LowerCall& call);
void lower_rope_backward(LowerCall& call);
void lower_selective_scan(LowerCall& call);
void lower_softmax(LowerCall& call);

}  // namespace rlx::webgpu
