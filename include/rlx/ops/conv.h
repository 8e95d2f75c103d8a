// Convolution, and the matrix it multiplies with when it is spelled as one (spec 10, 4.11). Layout is N, C, then the
// spatial axes. Lists have one entry per spatial axis; a missing entry is stride 1, padding 0, dilation 1.
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct ConvAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  int64_t groups = 1;
  static constexpr auto fields =
      std::tuple{field("kernel_size", &ConvAttrs::kernel_size), field("stride", &ConvAttrs::stride),
                 field("padding", &ConvAttrs::padding), field("dilation", &ConvAttrs::dilation),
                 field("groups", &ConvAttrs::groups)};
};
extern const Op<ConvAttrs> conv;

struct ConvTranspose2dAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation, output_padding;  // output_padding: 0 where missing
  int64_t groups = 1;
  static constexpr auto fields = std::tuple{field("kernel_size", &ConvTranspose2dAttrs::kernel_size),
                                            field("stride", &ConvTranspose2dAttrs::stride),
                                            field("padding", &ConvTranspose2dAttrs::padding),
                                            field("dilation", &ConvTranspose2dAttrs::dilation),
                                            field("output_padding", &ConvTranspose2dAttrs::output_padding),
                                            field("groups", &ConvTranspose2dAttrs::groups)};
};
extern const Op<ConvTranspose2dAttrs> conv_transpose2d;

struct Im2ColAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  static constexpr auto fields =
      std::tuple{field("kernel_size", &Im2ColAttrs::kernel_size), field("stride", &Im2ColAttrs::stride),
                 field("padding", &Im2ColAttrs::padding), field("dilation", &Im2ColAttrs::dilation)};
};
extern const Op<Im2ColAttrs> im2col;

}  // namespace rlx::ops
