// Indices that come as data.
#pragma once

#include <cstdint>

#include "rlx/error.h"

namespace rlx::host {

// Negative indices count from the end, once; what is then out of range is a fault of the data.
inline int64_t checked_index(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    fail(ErrorKind::kRuntime, str("Index (", index, ") is out of range for size (", size, ")."));
  return index < 0 ? index + size : index;
}

}  // namespace rlx::host
