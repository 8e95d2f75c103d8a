#include "rlx/ops/quantize.h"

#include <cmath>

#include "ops/conv_types.h"
#include "ops/infer.h"

namespace rlx::ops {

namespace {

void check_scales(const QuantizeAttrs& attrs, const TensorType& x) {
  const Dim channels = attrs.axis ? x.dim(normalize_axis(*attrs.axis, x.rank())) : Dim(1);
  const auto fits = [&](size_t length) {
    return length == 1 || (attrs.axis && (!channels.is_static() || channels.is(static_cast<int64_t>(length))));
  };
  require(fits(attrs.scales.size()), "Number of scales (", attrs.scales.size(), ") is not 1 or the channels (",
          channels, ").");
  require(attrs.zero_points.empty() || fits(attrs.zero_points.size()), "Number of zero points (",
          attrs.zero_points.size(), ") is not 1 or the channels (", channels, ").");
  for (const float s : attrs.scales) require(std::isfinite(s) && s > 0, "Scale (", s, ") is not positive.");
  for (const int64_t z : attrs.zero_points)
    require(z == static_cast<int32_t>(z), "Zero point (", z, ") does not fit 32 bits.");
}

Types infer_quantize(const InferCall& call) {
  require_float(call.input(0));
  check_scales(call.attrs<QuantizeAttrs>(), call.input(0));
  return TensorType{call.input(0).shape, DType::I8};
}

Types infer_dequantize(const InferCall& call) {
  require_dtype(call.input(0), DType::I8, "Operand");
  check_scales(call.attrs<QuantizeAttrs>(), call.input(0));
  return TensorType{call.input(0).shape, DType::F32};
}

// Zero points are those of int8 values; the oracle's 64-bit sums rely on it.
template <class A>
void check_requantize(const A& attrs) {
  for (const int64_t z : {attrs.x_zp, attrs.w_zp, attrs.out_zp})
    require(z >= -128 && z <= 127, "Zero point (", z, ") is not in [-128, 127].");
  require(std::isfinite(attrs.mult), "Attribute mult (", attrs.mult, ") is not finite.");
}

void check_operands(const InferCall& call, int64_t rank, const Dim& channels) {
  require_dtype(call.input(0), DType::I8, "Operand x");
  require_dtype(call.input(1), DType::I8, "Weight");
  require_dtype(call.input(2), DType::I32, "Bias");
  require_rank(call.input(0), rank, "Operand x");
  require_shape(call.input(2), {channels}, "Bias");
}

Types infer_matmul(const InferCall& call) {
  const TensorType &x = call.input(0), &w = call.input(1);
  require_rank(w, 2, "Weight");
  check_operands(call, 2, w.dim(1));
  require_same_dim(x.dim(1), w.dim(0), "Contraction sizes of x and weight");
  check_requantize(call.attrs<QMatmulAttrs>());
  return TensorType{{x.dim(0), w.dim(1)}, DType::I8};
}

Types infer_conv(const InferCall& call) {
  const auto& attrs = call.attrs<QConv2dAttrs>();
  const TensorType &x = call.input(0), &w = call.input(1);
  const Window window = window_of(attrs);
  require(window.rank() == 2, "kernel_size (", attrs.kernel_size, ") does not have 2 entries.");
  require_kernel(w, window);
  check_operands(call, 4, w.dim(0));
  check_requantize(attrs);
  return TensorType{conv_shape(x, w, window, attrs.groups, call.symbols), DType::I8};
}

}  // namespace

constinit const Op<QuantizeAttrs> quantize{{.name = "quantize",
                                            .category = "Quantised",
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .infer = infer_quantize,
                                            .doc = "clamp(round(x / scale) + zero point, -128, 127), ties to even; "
                                                   "NaN gives the zero point."}};

constinit const Op<QuantizeAttrs> dequantize{{.name = "dequantize",
                                              .category = "Quantised",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .infer = infer_dequantize,
                                              .doc = "(q - zero point) * scale."}};

constinit const Op<QMatmulAttrs> q_matmul{
    {.name = "q_matmul",
     .category = "Quantised",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_matmul,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "int8 matmul: clamp(round((bias + sum (x - x_zp)(w - w_zp)) * mult) + out_zp, -128, 127)."}};

constinit const Op<QConv2dAttrs> q_conv2d{
    {.name = "q_conv2d",
     .category = "Quantised",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_conv,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "int8 convolution over NCHW, requantised as q_matmul; padding has the value x_zp."}};

}  // namespace rlx::ops
