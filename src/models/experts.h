// Feed-forward layers of many experts, a few of which each token goes through.
#pragma once

#include "models/builder.h"

namespace rlx::models {

// x [batch, rows, width]: the experts that the softmax of ffn_gate_inp prefers, weighted by it (rescaled to add up to
// 1, unless the file says otherwise), plus the shared expert where the file has one, by its own gate.
Value mixture_of_experts(DecoderBuilder& b, const Value& x, const std::string& prefix);

}  // namespace rlx::models
