// Tensors borrowed from a file stand at any address; code that reads elements through a typed pointer needs one that
// the element's size divides.
#pragma once

#include <cstdint>

#include "rlx/tensor.h"

namespace rlx {

inline bool is_aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.bytes().data()) % size_of(t.dtype()) == 0;
}
// The tensor itself where that holds, else a copy.
inline Tensor aligned(const Tensor& t) { return is_aligned(t) ? t : t.clone(); }

}  // namespace rlx
