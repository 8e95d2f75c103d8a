#include "rlx/ops/conv_backward.h"

#include "ops/conv_types.h"
#include "ops/infer.h"

namespace rlx::ops {

static Window window_2d(const Window& window) {
  require(window.rank() == 2, "kernel_size (", window.kernel, ") does not have 2 entries.");
  return window;
}

static Types infer_input(const InferCall& call) {
  const auto& a = call.attrs<Conv2dBackwardInputAttrs>();
  const TensorType &dy = call.input(0), &w = call.input(1);
  require(a.input_shape.size() == 4, "input_shape (", a.input_shape, ") does not have 4 entries.");
  TensorType x{Shape(a.input_shape), dy.dtype};
  require_shape(dy, conv_type(x, w, window_2d(window_of(a)), a.groups, call.symbols).shape, "Gradient");
  return x;
}

static Types infer_weight(const InferCall& call) {
  const auto& a = call.attrs<Conv2dBackwardWeightAttrs>();
  const TensorType &x = call.input(0), &dy = call.input(1);
  require(a.weight_shape.size() == 4, "weight_shape (", a.weight_shape, ") does not have 4 entries.");
  require_same_dtype(x, dy);
  TensorType w{Shape(a.weight_shape), x.dtype};
  require_shape(dy, conv_type(x, w, window_2d(window_of(a)), a.groups, call.symbols).shape, "Gradient");
  return w;
}

constinit const Op<Conv2dBackwardInputAttrs> conv2d_backward_input{
    {.name = "conv2d_backward_input",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_input,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of a 2-D conv with respect to x, from dy and w; input_shape is the shape of x."}};

constinit const Op<Conv2dBackwardWeightAttrs> conv2d_backward_weight{
    {.name = "conv2d_backward_weight",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_weight,
     .traits = {.extent = ExtentRule::kNever},
     .doc = "Gradient of a 2-D conv with respect to w, from x and dy; weight_shape is the shape of w."}};

}  // namespace rlx::ops
