// ONNX's Col2Im and DeformConv. Lists have one entry per spatial axis; a missing entry is stride 1, dilation 1, no
// pads.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct Col2ImAttrs {
  std::vector<Dim> image_size;
  std::vector<int64_t> kernel_size, stride, dilation;
  std::vector<int64_t> before, after;  // elements around the image that the windows reach
  static constexpr auto fields =
      std::tuple{field("image_size", &Col2ImAttrs::image_size), field("kernel_size", &Col2ImAttrs::kernel_size),
                 field("stride", &Col2ImAttrs::stride),         field("dilation", &Col2ImAttrs::dilation),
                 field("before", &Col2ImAttrs::before),         field("after", &Col2ImAttrs::after)};
};
extern const Op<Col2ImAttrs> col2im;  // x

struct DeformConvAttrs {
  std::vector<int64_t> stride, dilation, before, after;
  int64_t groups = 1;
  int64_t offset_groups = 1;  // channels of x share offsets in as many groups
  bool bias = false, mask = false;
  static constexpr auto fields =
      std::tuple{field("stride", &DeformConvAttrs::stride), field("dilation", &DeformConvAttrs::dilation),
                 field("before", &DeformConvAttrs::before), field("after", &DeformConvAttrs::after),
                 field("groups", &DeformConvAttrs::groups), field("offset_groups", &DeformConvAttrs::offset_groups),
                 field("bias", &DeformConvAttrs::bias),     field("mask", &DeformConvAttrs::mask)};
};
// x [N, C, H, W], w [O, C / groups, kH, kW], offset [N, offset_groups * kH * kW * 2, Ho, Wo] (of each tap its y, then
// its x), bias [O] with `bias`, mask [N, offset_groups * kH * kW, Ho, Wo] with `mask`.
extern const Op<DeformConvAttrs> deform_conv;

}  // namespace rlx::ops
