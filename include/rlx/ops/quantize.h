// Integers for activations: quantize, dequantize, and the int8 matmul and convolution (spec 10, 4.12).
#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

// One scale and zero point for the whole tensor, or one per index of `axis`.
struct QuantizeAttrs {
  std::optional<int64_t> axis;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;  // empty: 0 everywhere
  static constexpr auto fields =
      std::tuple{field("axis", &QuantizeAttrs::axis), field("scales", &QuantizeAttrs::scales),
                 field("zero_points", &QuantizeAttrs::zero_points)};
};
extern const Op<QuantizeAttrs> quantize;    // float to I8
extern const Op<QuantizeAttrs> dequantize;  // I8 to F32

struct QMatmulAttrs {
  int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  float mult = 1;  // scale of x times scale of w over scale of the result
  static constexpr auto fields = std::tuple{field("x_zp", &QMatmulAttrs::x_zp), field("w_zp", &QMatmulAttrs::w_zp),
                                            field("out_zp", &QMatmulAttrs::out_zp), field("mult", &QMatmulAttrs::mult)};
};
extern const Op<QMatmulAttrs> q_matmul;  // (x I8 [M, K], w I8 [K, N], bias I32 [N])

struct QConv2dAttrs {
  std::vector<int64_t> kernel_size, stride, padding, dilation;  // missing entries: stride 1, padding 0, dilation 1
  int64_t groups = 1;
  int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  float mult = 1;
  static constexpr auto fields = std::tuple{field("kernel_size", &QConv2dAttrs::kernel_size),
                                            field("stride", &QConv2dAttrs::stride),
                                            field("padding", &QConv2dAttrs::padding),
                                            field("dilation", &QConv2dAttrs::dilation),
                                            field("groups", &QConv2dAttrs::groups),
                                            field("x_zp", &QConv2dAttrs::x_zp),
                                            field("w_zp", &QConv2dAttrs::w_zp),
                                            field("out_zp", &QConv2dAttrs::out_zp),
                                            field("mult", &QConv2dAttrs::mult)};
};
extern const Op<QConv2dAttrs> q_conv2d;  // (x I8 [N, Cin, H, W], w I8 [Cout, Cin / groups, kH, kW], bias I32 [Cout])

}  // namespace rlx::ops
