// Whether a model fits its device, asked before any of it is loaded.
#pragma once

#include "models/parts.h"
#include "rlx/runtime.h"

namespace rlx::generate {

// Error(kMemory) says what is needed, what there is and what would fit. `context`: the tokens that the graph's states
// are for; 0 where there are none.
//
// The memory of the machine is known. That of a GPU of its own is not (WebGPU has no such question): the driver says
// when it is full. What a GPU binds at once is known, and a layer's keys are bound at once.
void require_room(const models::ModelParts& model, int64_t context, const CompileOptions& options);

}  // namespace rlx::generate
