#include "rlx/ops/quantize_linear.h"

#include "core/convert.h"
#include "ops/infer.h"
#include "ops/linear_scales.h"

namespace rlx::ops {

static void require_code_dtype(DType dtype) {
  require(dtype == DType::I8 || dtype == DType::U8 || dtype == DType::I16 || dtype == DType::U16 || dtype == DType::I32,
          "Code dtype (", dtype, ") is not i8, u8, i16, u16 or i32.");
}

static void require_small_float(DType dtype, std::string_view what) {
  require(dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16, what, " dtype (", dtype,
          ") is not f32, f16 or bf16.");
}

static void check_scales(const InferCall& call, int64_t axis, int64_t block_size, DType codes) {
  const TensorType &x = call.input(0), &scale = call.input(1);
  require_small_float(scale.dtype, "Scale");
  require(block_size >= 0, "block_size (", block_size, ") is negative.");
  if (block_size > 0) {
    Shape shape = x.shape;
    const int64_t a = normalize_axis(axis, x.rank());
    shape[a] = call.symbols.div(call.symbols.add(x.dim(a), block_size - 1), block_size);
    require_shape(scale, shape, "Scale");
  } else if (!is_one_scale(scale.shape)) {
    require_rank(scale, 1, "Scale");
    require_shape(scale, {x.dim(normalize_axis(axis, x.rank()))}, "Scale");
  }
  if (call.num_inputs() < 3) return;
  require_dtype(call.input(2), codes, "Zero point");
  if (block_size > 0 || !is_one_scale(scale.shape) || !is_one_scale(call.input(2).shape))
    require_shape(call.input(2), scale.shape, "Zero point");
}

static Types infer_quantize(const InferCall& call) {
  const auto& a = call.attrs<QuantizeLinearAttrs>();
  require_small_float(call.input(0).dtype, "Operand");
  require_code_dtype(a.to);
  check_scales(call, a.axis, a.block_size, a.to);
  const int64_t low = a.low.value_or(smallest_int(a.to)), high = a.high.value_or(largest_int(a.to));
  require(low >= smallest_int(a.to) && high <= largest_int(a.to) && low <= high, "The range of codes (", low, " to ",
          high, ") is empty or more than ", a.to, " holds.");
  return TensorType{call.input(0).shape, a.to};
}

static Types infer_dequantize(const InferCall& call) {
  const auto& a = call.attrs<DequantizeLinearAttrs>();
  require_code_dtype(call.input(0).dtype);
  check_scales(call, a.axis, a.block_size, call.input(0).dtype);
  const DType to = a.to.value_or(call.input(1).dtype);
  require_small_float(to, "Result");
  return TensorType{call.input(0).shape, to};
}

// An axis that the scales know of cannot be cut or put together.
template <class A>
static bool mixes_scaled_axis(const Attrs& attrs, int64_t rank, int64_t axis) {
  const auto& a = attrs.as<A>();
  return a.block_size > 0 || axis == (a.axis < 0 ? a.axis + rank : a.axis);
}

constinit const Op<QuantizeLinearAttrs> quantize_linear{
    {.name = "quantize_linear",
     .category = "Quantised",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_quantize,
     .mixes_axis = mixes_scaled_axis<QuantizeLinearAttrs>,
     .doc = "clamp(round(x / scale) + zero point, low, high): the quotient in f32, ties to even, NaN gives the zero "
            "point."}};

constinit const Op<DequantizeLinearAttrs> dequantize_linear{{.name = "dequantize_linear",
                                                             .category = "Quantised",
                                                             .min_inputs = 2,
                                                             .max_inputs = 3,
                                                             .infer = infer_dequantize,
                                                             .mixes_axis = mixes_scaled_axis<DequantizeLinearAttrs>,
                                                             .doc = "(q - zero point) * scale."}};

}  // namespace rlx::ops
