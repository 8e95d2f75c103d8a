#pragma once

#include "runtime/device_program.h"

namespace rlx::reference {

Backend backend();

}  // namespace rlx::reference
