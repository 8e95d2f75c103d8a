// The step of an activation, for epilogues.
#pragma once

#include "backends/cpu/elementwise/micro.h"
#include "rlx/ops/activation.h"

namespace rlx::cpu {

StepFn activation_step(ops::ActivationKind kind);  // null: none

}  // namespace rlx::cpu
