#pragma once

#include <optional>

#include "backends/webgpu/program.h"

namespace rlx::webgpu {

// A node with regions as a Loop, its operands and results left to be filled in; nullopt where the host runs it better:
// a region needs a step of the host, has values the device cannot hold, or does too little.
std::optional<Loop> lower_loop(const Node& node, const Device& device, const CompileOptions& options);

}  // namespace rlx::webgpu
