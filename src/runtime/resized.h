// A tensor of other sizes: the first rows of every axis, zeros where there are none.
#pragma once

#include <algorithm>

#include "backends/host/box_copy.h"
#include "rlx/tensor.h"

namespace rlx {

inline Tensor resized(const Tensor& from, const std::vector<int64_t>& sizes) {
  if (from.sizes() == sizes) return from;
  Tensor to(from.dtype(), sizes);
  std::vector<int64_t> box;
  for (size_t i = 0; i < sizes.size(); ++i) box.push_back(std::min(sizes[i], from.sizes()[i]));
  if (std::find(box.begin(), box.end(), 0) == box.end())
    host::box_copy(box, from.bytes().data(), from.sizes(), to.mutable_bytes().data(), sizes, size_of(from.dtype()));
  return to;
}

}  // namespace rlx
