// Sliding windows of conv, pool and im2col: attribute lists with their defaults, and how many windows fit.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/op.h"

namespace rlx::ops {

// One entry per spatial axis; every kernel, stride and dilation is at least 1, every padding at least 0.
struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> padding, padding_end;  // before the first element and behind the last

  int64_t rank() const { return static_cast<int64_t>(kernel.size()); }
  int64_t taps() const;                // elements of the kernel
  int64_t extent(int64_t axis) const;  // dilation * (kernel - 1) + 1
};

// Fills in missing entries and checks all of them. `padding` has an entry per spatial axis, which is that of both ends,
// or two: all beginnings, then all ends.
Window make_window(const std::vector<int64_t>& kernel_size, const std::vector<int64_t>& stride,
                   const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation);
template <class A>
Window window_of(const A& attrs) {
  return make_window(attrs.kernel_size, attrs.stride, attrs.padding, attrs.dilation);
}

// A list attribute with one entry per spatial axis, `missing` where it is short.
std::vector<int64_t> filled(const std::vector<int64_t>& list, int64_t rank, int64_t missing, int64_t least,
                            std::string_view what);

// Positions of the window along a spatial axis of size `in`; that no window fits is an error.
// Ceil mode is PyTorch's and ONNX's: the last window may hang over the end by less than a stride, but starts inside the
// input or the padding before it.
Dim window_count(const Window& window, int64_t axis, const Dim& in, SymbolTable& symbols, bool ceil_mode = false);

// Rank of x is the window's plus 2 (N and C).
void require_spatial(const Window& window, const TensorType& x, std::string_view what);

}  // namespace rlx::ops
