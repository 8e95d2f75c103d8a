#include "rlx/ops/complex.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_norm_sq(const InferCall& call) {
  require_dtype(call.input(0), DType::C64, "Operand");
  return TensorType{call.input(0).shape, DType::F32};
}

static Types infer_conjugate(const InferCall& call) {
  require_dtype(call.input(0), DType::C64, "Operand");
  return call.input(0);
}

static Types infer_norm_sq_backward(const InferCall& call) {
  require_dtype(call.input(0), DType::C64, "Operand z");
  require_dtype(call.input(1), DType::F32, "Operand g");
  require_shape(call.input(1), call.input(0).shape, "Operand g");
  return call.input(0);
}

constinit const Op<NoAttrs> complex_norm_sq{{.name = "complex_norm_sq",
                                             .category = "Elementwise",
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .infer = infer_norm_sq,
                                             .doc = "re^2 + im^2 of a c64, as f32."}};
constinit const Op<NoAttrs> conjugate{{.name = "conjugate",
                                       .category = "Elementwise",
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .infer = infer_conjugate,
                                       .traits = {.in_place = 0b1},
                                       .doc = "(re, -im) of a c64."}};
constinit const Op<NoAttrs> complex_norm_sq_backward{
    {.name = "complex_norm_sq_backward",
     .category = "Backward",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_norm_sq_backward,
     .traits = {.in_place = 0b1, .extent = ExtentRule::kNever},
     .doc = "(g re, g im): the Wirtinger derivative of complex_norm_sq by the conjugate of z, times g."}};

}  // namespace rlx::ops
