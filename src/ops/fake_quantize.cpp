#include "rlx/ops/fake_quantize.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

void check_bits(int64_t bits) {
  require(bits == 8 || bits == 4 || bits == 2, "Attribute bits (", bits, ") is not 8, 4 or 2.");
}

// Scales and states: one number per channel.
void check_scale(const TensorType& scale, const TensorType& x, std::optional<int64_t> axis, std::string_view what) {
  require_float(scale, what);
  require_shape(scale, {axis ? x.dim(normalize_axis(*axis, x.rank())) : Dim(1)}, what);
}

Types infer_forward(const InferCall& call) {
  const auto& attrs = call.attrs<FakeQuantizeAttrs>();
  const TensorType& x = call.input(0);
  require_float(x);
  check_bits(attrs.bits);
  if (attrs.axis) normalize_axis(*attrs.axis, x.rank());
  const int64_t operands = attrs.scale_mode == ScaleMode::kPerBatch ? 1 : 2;
  require(call.num_inputs() == operands, "Number of operands (", call.num_inputs(), ") with scale_mode ",
          name_of(attrs.scale_mode), " is not ", operands, ".");
  if (operands == 1) return x;
  check_scale(call.input(1), x, attrs.axis, "State");
  if (attrs.scale_mode == ScaleMode::kFixed) return x;
  require(attrs.decay >= 0 && attrs.decay <= 1, "Attribute decay (", attrs.decay, ") is not in [0, 1].");
  return {x, call.input(1)};
}

Types infer_lsq(const InferCall& call) {
  const auto& attrs = call.attrs<FakeQuantizeLsqAttrs>();
  require_float(call.input(0));
  check_bits(attrs.bits);
  check_scale(call.input(1), call.input(0), attrs.axis, "Scale");
  return call.input(0);
}

void check_gradient(const TensorType& dy, const TensorType& x) {
  require_same_dtype(x, dy);
  require_shape(dy, x.shape, "Gradient");
}

Types infer_lsq_backward(const InferCall& call) {
  infer_lsq(call);
  check_gradient(call.input(2), call.input(0));
  return {call.input(0), call.input(1)};
}

Types infer_backward(const InferCall& call) {
  const auto& attrs = call.attrs<FakeQuantizeBackwardAttrs>();
  const TensorType& x = call.input(0);
  require_float(x);
  check_bits(attrs.bits);
  if (attrs.axis) normalize_axis(*attrs.axis, x.rank());
  check_gradient(call.input(1), x);
  return x;
}

}  // namespace

// The scale is a maximum over the batch, so rows are not independent of one another.
constinit const Op<FakeQuantizeAttrs> fake_quantize{
    {.name = "fake_quantize",
     .category = "Quantised",
     .min_inputs = 1,
     .max_inputs = 2,
     .infer = infer_forward,
     .traits = {.in_place = 0b1, .state_operand = 1, .state_result = 1, .extent = ExtentRule::kNever},
     .doc =
         "clamp(round(x / s), -q_max, q_max) * s with the scale of the batch, a running mean of it, or a given one."}};

constinit const Op<FakeQuantizeLsqAttrs> fake_quantize_lsq{
    {.name = "fake_quantize_lsq",
     .category = "Quantised",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_lsq,
     .traits = {.in_place = 0b1},
     .doc = "clamp(round(x / s), -q_max, q_max) * s with a learned scale s."}};

constinit const Op<FakeQuantizeLsqAttrs> fake_quantize_lsq_backward{
    {.name = "fake_quantize_lsq_backward",
     .category = "Backward",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_lsq_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradients of fake_quantize_lsq: dx is dy inside the range, dscale sums dy * (round(z) - z), z = x / s, or "
            "dy * ±q_max outside."}};

constinit const Op<FakeQuantizeBackwardAttrs> fake_quantize_backward{
    {.name = "fake_quantize_backward",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_backward,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Straight-through gradient of fake_quantize, with the scale of the batch."}};

}  // namespace rlx::ops
