// Convolution, and the matrix it multiplies with when it is spelled as one (spec 10, 4.11). Layout is N, C, then the
// spatial axes. Lists have one entry per spatial axis; a missing entry is stride 1, padding 0, dilation 1. Padding is
// that of both ends of an axis, or has two entries per axis: all beginnings, then all ends (as ONNX's pads).
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
extern const Op<ConvAttrs> conv;  // (x, w, optional bias [Cout])

// Padding is what is cut off the result; output_padding (0 where missing) makes it longer at its end.
struct ConvTransposeAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation, output_padding;
  int64_t groups = 1;
  static constexpr auto fields = std::tuple{field("kernel_size", &ConvTransposeAttrs::kernel_size),
                                            field("stride", &ConvTransposeAttrs::stride),
                                            field("padding", &ConvTransposeAttrs::padding),
                                            field("dilation", &ConvTransposeAttrs::dilation),
                                            field("output_padding", &ConvTransposeAttrs::output_padding),
                                            field("groups", &ConvTransposeAttrs::groups)};
};
extern const Op<ConvTransposeAttrs> conv_transpose;  // (x, w, optional bias [Cout])

struct Im2ColAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  static constexpr auto fields =
      std::tuple{field("kernel_size", &Im2ColAttrs::kernel_size), field("stride", &Im2ColAttrs::stride),
                 field("padding", &Im2ColAttrs::padding), field("dilation", &Im2ColAttrs::dilation)};
};
extern const Op<Im2ColAttrs> im2col;

}  // namespace rlx::ops
