#pragma once

#include "runtime/device_program.h"

namespace rlx::webgpu {

Backend backend();

// How the GPU runs an op, in general: "kernel", "decomposition", "leaf", "view", "loop" (its regions run on the
// device), or "host: " and why.
std::string how_it_runs(const OpDef& op);

}  // namespace rlx::webgpu
