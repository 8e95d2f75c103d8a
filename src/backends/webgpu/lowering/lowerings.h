// Every lowering, one file per op or family.
#pragma once

#include "backends/webgpu/lower.h"

namespace rlx::webgpu {

bool elementwise_supports(const LowerSignature& signature, const Device& device);
void lower_elementwise(LowerCall& call);
void lower_softmax(LowerCall& call);

}  // namespace rlx::webgpu
