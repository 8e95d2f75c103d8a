// gather_elements and scatter_elements: indices [outer, axis, inner] beside x, whose other axes may be longer. Runs of
// indices that follow each other have elements of x a fixed step apart, but for the index itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/strided_copy.h"

namespace rlx::cpu {

// Axes that indices count through, with the elements of x between two of them; those that lie alike are one.
class WalkedAxes {
 public:
  void add(int64_t size, int64_t stride) {
    if (size == 1) return;
    if (rank_ > 0) {
      Axis& last = axes_[static_cast<size_t>(rank_ - 1)];
      if (last.stride == size * stride) {
        last = {last.size * size, stride};
        return;
      }
    }
    axes_[static_cast<size_t>(rank_++)] = {size, stride};
  }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t a = 0; a < rank_; ++a) n *= axes_[static_cast<size_t>(a)].size;
    return n;
  }
  // The last axis: indices that follow each other, and the step between their elements.
  int64_t run() const { return rank_ == 0 ? 1 : axes_[static_cast<size_t>(rank_ - 1)].size; }
  int64_t step() const { return rank_ == 0 ? 0 : axes_[static_cast<size_t>(rank_ - 1)].stride; }
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (int64_t a = rank_; a-- > 0;) {
      const Axis& axis = axes_[static_cast<size_t>(a)];
      sum += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return sum;
  }

 private:
  struct Axis {
    int64_t size, stride;
  };
  std::array<Axis, kMostAxes> axes_{};
  int64_t rank_ = 0;
};

struct AlongAxis {
  WalkedAxes outer, inner;
  int64_t count = 1;   // indices along the axis
  int64_t size = 0;    // of the axis of x
  int64_t stride = 1;  // elements of x between two places of the axis

  AlongAxis(std::span<const int64_t> x, std::span<const int64_t> indices, int64_t axis) {
    const auto at = static_cast<size_t>(axis);
    count = indices[at];
    size = x[at];
    for (size_t a = at + 1; a < x.size(); ++a) stride *= x[a];
    int64_t own = stride * size;
    for (size_t a = 0; a < at; ++a) own *= x[a];
    for (size_t a = 0; a < x.size(); ++a) {
      own = x[a] == 0 ? 0 : own / x[a];
      if (a != at) (a < at ? outer : inner).add(indices[a], own);
    }
  }
};

}  // namespace rlx::cpu
