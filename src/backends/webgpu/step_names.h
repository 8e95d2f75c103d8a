// What traces and reports call a node's steps (spec 40, 4): families where one kernel runs many ops, the op otherwise.
#pragma once

#include <span>
#include <string>

#include "rlx/op.h"

namespace rlx::webgpu {

// On the GPU. Lowerings name helper steps themselves.
std::string step_name(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs);
// The same run by the cpu's kernel.
std::string host_step_name(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs);

}  // namespace rlx::webgpu
