#pragma once

#include "runtime/device_program.h"

namespace rlx::cpu {

Backend backend();

}  // namespace rlx::cpu
