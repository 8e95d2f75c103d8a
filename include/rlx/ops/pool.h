// Reductions of sliding windows (spec 10, 4.11 and Q31). Padding is the identity of the reduction; its list is that of
// conv.h.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct PoolAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  bool ceil_mode = false;         // also windows that hang over the end, as long as they start before it
  bool count_include_pad = true;  // pool_mean: padding counts in the divisor
  static constexpr auto fields = std::tuple{
      field("kernel_size", &PoolAttrs::kernel_size), field("stride", &PoolAttrs::stride),
      field("padding", &PoolAttrs::padding),         field("dilation", &PoolAttrs::dilation),
      field("ceil_mode", &PoolAttrs::ceil_mode),     field("count_include_pad", &PoolAttrs::count_include_pad)};
};
extern const Op<PoolAttrs> pool_max;
extern const Op<PoolAttrs> pool_mean;
extern const Op<PoolAttrs> pool_min;
extern const Op<PoolAttrs> pool_prod;
extern const Op<PoolAttrs> pool_sum;

// Where pool_max finds its maxima: indices into all of x as one long row, I64. `column_major` counts the spatial axes
// the other way round, the first one fastest.
struct PoolMaxIndicesAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  bool ceil_mode = false;
  bool column_major = false;
  static constexpr auto fields = std::tuple{field("kernel_size", &PoolMaxIndicesAttrs::kernel_size),
                                            field("stride", &PoolMaxIndicesAttrs::stride),
                                            field("padding", &PoolMaxIndicesAttrs::padding),
                                            field("dilation", &PoolMaxIndicesAttrs::dilation),
                                            field("ceil_mode", &PoolMaxIndicesAttrs::ceil_mode),
                                            field("column_major", &PoolMaxIndicesAttrs::column_major)};
};
extern const Op<PoolMaxIndicesAttrs> pool_max_indices;

struct MaxPool2dBackwardAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  bool ceil_mode = false;
  static constexpr auto fields = std::tuple{
      field("kernel_size", &MaxPool2dBackwardAttrs::kernel_size), field("stride", &MaxPool2dBackwardAttrs::stride),
      field("padding", &MaxPool2dBackwardAttrs::padding), field("dilation", &MaxPool2dBackwardAttrs::dilation),
      field("ceil_mode", &MaxPool2dBackwardAttrs::ceil_mode)};
};
extern const Op<MaxPool2dBackwardAttrs> max_pool2d_backward;  // (x, dy)

}  // namespace rlx::ops
