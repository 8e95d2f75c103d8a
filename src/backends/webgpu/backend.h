#pragma once

#include "runtime/device_program.h"

namespace rlx::webgpu {

Backend backend();

}  // namespace rlx::webgpu
