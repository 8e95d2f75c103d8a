// Gradients of a 2-D conv: each carries the forward attributes, and the shape that its operands do not tell.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct Conv2dBackwardInputAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  int64_t groups = 1;
  std::vector<Dim> input_shape;  // [N, Cin, H, W] of the forward operand
  static constexpr auto fields = std::tuple{field("kernel_size", &Conv2dBackwardInputAttrs::kernel_size),
                                            field("stride", &Conv2dBackwardInputAttrs::stride),
                                            field("padding", &Conv2dBackwardInputAttrs::padding),
                                            field("dilation", &Conv2dBackwardInputAttrs::dilation),
                                            field("groups", &Conv2dBackwardInputAttrs::groups),
                                            field("input_shape", &Conv2dBackwardInputAttrs::input_shape)};
};
extern const Op<Conv2dBackwardInputAttrs> conv2d_backward_input;  // (dy, w)

struct Conv2dBackwardWeightAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  int64_t groups = 1;
  std::vector<Dim> weight_shape;  // [Cout, Cin / groups, kH, kW]
  static constexpr auto fields = std::tuple{field("kernel_size", &Conv2dBackwardWeightAttrs::kernel_size),
                                            field("stride", &Conv2dBackwardWeightAttrs::stride),
                                            field("padding", &Conv2dBackwardWeightAttrs::padding),
                                            field("dilation", &Conv2dBackwardWeightAttrs::dilation),
                                            field("groups", &Conv2dBackwardWeightAttrs::groups),
                                            field("weight_shape", &Conv2dBackwardWeightAttrs::weight_shape)};
};
extern const Op<Conv2dBackwardWeightAttrs> conv2d_backward_weight;  // (x, dy)

}  // namespace rlx::ops
