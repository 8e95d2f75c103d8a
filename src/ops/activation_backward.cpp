#include "rlx/ops/activation_backward.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_relu(const InferCall& call) {
  const TensorType &x = call.input(0), &dy = call.input(1);
  require_float(x);
  require_same_dtype(x, dy);
  require_shape(dy, x.shape, "Operand dy");
  return x;
}

static Types infer(const InferCall& call) {
  require(call.attrs<ActivationBackwardAttrs>().kind != ActivationKind::kNone, "Activation kind (none) has no op.");
  return infer_relu(call);
}

static constexpr OpDef backward(std::string_view name, Types (*rule)(const InferCall&), std::string_view doc) {
  return {.name = name,
          .category = "Backward",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = rule,
          .traits = {.in_place = 0b11, .extent = ExtentRule::kNever},
          .doc = doc};
}

constinit const Op<ActivationBackwardAttrs> activation_backward{
    backward("activation_backward", infer, "f'(x) * dy for the activation f of a kind; round passes dy on.")};
constinit const Op<NoAttrs> relu_backward{backward("relu_backward", infer_relu, "dy where x > 0, else 0.")};

}  // namespace rlx::ops
