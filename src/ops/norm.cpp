#include "rlx/ops/norm.h"

#include "ops/in_f32.h"
#include "ops/infer.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/reduce.h"
#include "rlx/ops/reshape.h"

namespace rlx::ops {

namespace {

// gamma or beta: float, of x's dtype and of the given shape.
void require_param(const InferCall& call, int64_t operand, const Shape& shape, std::string_view what) {
  require_same_dtype(call.input(0), call.input(operand));
  require_shape(call.input(operand), shape, what);
}

void require_eps(float eps) { require(eps >= 0, "Eps (", eps, ") is negative."); }  // NaN too

// The axes from `axis` on, as a shape of their own.
Shape trailing(const Shape& shape, int64_t axis) {
  Shape out;
  for (int64_t d = normalize_axis(axis, shape.rank()); d < shape.rank(); ++d) out.push_back(shape[d]);
  return out;
}

Shape channels(const InferCall& call) {
  const TensorType& x = call.input(0);
  const int64_t groups = call.attrs<GroupNormAttrs>().num_groups;
  require(x.rank() >= 2, "Operand rank (", x.rank(), ") is less than 2.");
  const Dim& c = x.dim(1);
  require(groups >= 1 && (!c.is_static() || c.value() % groups == 0), "Number of groups (", groups,
          ") does not divide the channels (", c, ").");
  return {c};
}

template <class A>
Shape check_trailing(const InferCall& call) {
  require_float(call.input(0));
  require_eps(call.attrs<A>().eps);
  return trailing(call.input(0).shape, call.attrs<A>().axis);
}

Types infer_layer_norm(const InferCall& call) {
  const Shape params = check_trailing<LayerNormAttrs>(call);
  require_param(call, 1, params, "Gamma");
  require_param(call, 2, params, "Beta");
  return call.input(0);
}

Types infer_rms_norm(const InferCall& call) {
  const Shape params = check_trailing<RmsNormAttrs>(call);
  require_param(call, 1, params, "Gamma");
  if (call.num_inputs() == 3) require_param(call, 2, params, "Beta");
  return call.input(0);
}

Types infer_layer_norm2d(const InferCall& call) {
  const TensorType& x = call.input(0);
  require_float(x);
  require_rank(x, 4, "Operand");
  require_eps(call.attrs<LayerNorm2dAttrs>().eps);
  require_param(call, 1, {x.dim(1)}, "Gamma");
  require_param(call, 2, {x.dim(1)}, "Beta");
  return x;
}

Types infer_group_norm(const InferCall& call) {
  require_float(call.input(0));
  require_eps(call.attrs<GroupNormAttrs>().eps);
  const Shape params = channels(call);
  require_param(call, 1, params, "Gamma");
  require_param(call, 2, params, "Beta");
  return call.input(0);
}

// The variance in two passes: the difference of two means would cancel.
Values decompose_group_norm(const DecomposeCall& call) {
  const auto& attrs = call.attrs<GroupNormAttrs>();
  const Values in = in_f32(call.inputs());
  const Value& x = in[0];
  const Shape shape = x.shape();
  SymbolTable& symbols = x.graph().symbols();
  const std::vector<Dim> pixels(shape.begin() + 2, shape.end());
  const Dim group = symbols.mul(symbols.div(shape[1], attrs.num_groups), symbols.product(pixels));
  const Value rows = reshape(x, {.new_shape = {shape[0], attrs.num_groups, group}});
  // The mean is rounded, which shows where it is large beside the deviations: what it left is subtracted, too.
  const Value about = rows - reduce_mean(rows, {.axes = {2}, .keep_dim = true});
  const Value centered = about - reduce_mean(about, {.axes = {2}, .keep_dim = true});
  const Value variance = reduce_mean(centered * centered, {.axes = {2}, .keep_dim = true});
  const Value unit = centered / sqrt(variance + scalar_like(x, attrs.eps));
  std::vector<Dim> per_channel(static_cast<size_t>(shape.rank()) - 1, Dim(1));
  per_channel[0] = shape[1];
  const Value gamma = reshape(in[1], {.new_shape = per_channel}), beta = reshape(in[2], {.new_shape = per_channel});
  return {as_dtype(reshape(unit, {.new_shape = shape.dims()}) * gamma + beta, call.input(0).dtype())};
}

Types infer_layer_norm_backward(const InferCall& call) {
  const Shape params = check_trailing<LayerNormAttrs>(call);
  require_param(call, 1, params, "Gamma");
  require_param(call, 2, call.input(0).shape, "Gradient");
  return {call.input(0), call.input(1), call.input(1)};
}

Types infer_rms_norm_backward(const InferCall& call) {
  const Shape params = check_trailing<RmsNormAttrs>(call);
  const int64_t last = call.num_inputs() - 1;
  require_param(call, 1, params, "Gamma");
  if (last == 3) require_param(call, 2, params, "Beta");
  require_param(call, last, call.input(0).shape, "Gradient");
  if (last == 3) return {call.input(0), call.input(1), call.input(2)};
  return {call.input(0), call.input(1)};
}

Types infer_group_norm_backward(const InferCall& call) {
  require_float(call.input(0));
  require_eps(call.attrs<GroupNormAttrs>().eps);
  require_param(call, 1, channels(call), "Gamma");
  require_param(call, 2, call.input(0).shape, "Gradient");
  return {call.input(0), call.input(1), call.input(1)};
}

template <class A>
bool mixes_trailing(const Attrs& attrs, int64_t rank, int64_t axis) {
  return axis >= normalize_axis(attrs.as<A>().axis, rank);
}
bool mixes_channels(const Attrs&, int64_t, int64_t axis) { return axis == 1; }
bool mixes_all_but_batch(const Attrs&, int64_t, int64_t axis) { return axis >= 1; }
bool mixes_all(const Attrs&, int64_t, int64_t) { return true; }

constexpr OpDef norm(std::string_view name, int min_inputs, Types (*infer)(const InferCall&),
                     bool (*mixes)(const Attrs&, int64_t, int64_t), std::string_view doc,
                     Values (*decompose)(const DecomposeCall&) = nullptr) {
  return {.name = name,
          .category = "Normalisation",
          .min_inputs = min_inputs,
          .max_inputs = 3,
          .infer = infer,
          .decompose = decompose,
          .mixes_axis = mixes,
          .traits = {.in_place = 0b1},
          .doc = doc};
}

constexpr OpDef backward(std::string_view name, int max_inputs, Types (*infer)(const InferCall&),
                         std::string_view doc) {
  return {.name = name,
          .category = "Backward",
          .min_inputs = 3,
          .max_inputs = max_inputs,
          .infer = infer,
          .mixes_axis = mixes_all,  // the gradients of gamma and beta sum over every row
          .traits = {.extent = ExtentRule::kNever},
          .doc = doc};
}

}  // namespace

constinit const Op<LayerNormAttrs> layer_norm{
    norm("layer_norm", 3, infer_layer_norm, mixes_trailing<LayerNormAttrs>,
         "(x - mean) / sqrt(variance + eps) * gamma + beta over the axes from `axis` on.")};
constinit const Op<RmsNormAttrs> rms_norm{
    norm("rms_norm", 2, infer_rms_norm, mixes_trailing<RmsNormAttrs>,
         "x / sqrt(mean(x^2) + eps) * gamma [+ beta] over the axes from `axis` on.")};
constinit const Op<LayerNorm2dAttrs> layer_norm2d{norm("layer_norm2d", 3, infer_layer_norm2d, mixes_channels,
                                                       "layer_norm over the channels of [N, C, H, W], at each pixel.")};
constinit const Op<GroupNormAttrs> group_norm{
    norm("group_norm", 3, infer_group_norm, mixes_all_but_batch,
         "Normalises each group of channels of [N, C, ...] as one, then scales and shifts each channel.",
         decompose_group_norm)};

constinit const Op<LayerNormAttrs> layer_norm_backward{
    backward("layer_norm_backward", 3, infer_layer_norm_backward,
             "Gradients of layer_norm from x, gamma and dy: of x, gamma and beta.")};
constinit const Op<RmsNormAttrs> rms_norm_backward{
    backward("rms_norm_backward", 4, infer_rms_norm_backward,
             "Gradients of rms_norm from x, gamma, [beta] and dy: of x, gamma and [beta].")};
constinit const Op<GroupNormAttrs> group_norm_backward{
    backward("group_norm_backward", 3, infer_group_norm_backward,
             "Gradients of group_norm from x, gamma and dy: of x, gamma and beta.")};

}  // namespace rlx::ops
