#include "rlx/ops/fused_residual_norm.h"

#include "ops/infer.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/norm.h"

namespace rlx::ops {

namespace {

// What both have in common; `params` is the number of gamma and beta operands.
Types infer(const InferCall& call, bool has_bias, int64_t first_param) {
  const TensorType& x = call.input(0);
  require_float(x);
  require(x.rank() >= 1, "Operand rank (0) is less than 1.");
  require_same_dtype(x, call.input(1));
  require_shape(call.input(1), x.shape, "Residual");
  const Shape row{x.dim(x.rank() - 1)};
  static constexpr std::string_view kNames[] = {"Gamma", "Beta"};
  for (int64_t i = 2; i < call.num_inputs(); ++i) {
    require_same_dtype(x, call.input(i));
    require_shape(call.input(i), row, has_bias && i == 2 ? "Bias" : kNames[i - first_param]);
  }
  return {x, x};
}

Types infer_ln(const InferCall& call) {
  const auto& [has_bias, eps] = call.attrs<FusedResidualLnAttrs>();
  const int64_t operands = has_bias ? 5 : 4;
  require(call.num_inputs() == operands, "Number of operands (", call.num_inputs(), ") is not ", operands,
          " where has_bias is ", has_bias, ".");
  require(eps >= 0, "Eps (", eps, ") is negative.");
  return infer(call, has_bias, operands - 2);
}

Types infer_rms(const InferCall& call) {
  const auto& [has_bias, eps] = call.attrs<FusedResidualRmsNormAttrs>();
  const int64_t first = has_bias ? 3 : 2;
  require(call.num_inputs() == first + 1 || call.num_inputs() == first + 2, "Number of operands (", call.num_inputs(),
          ") is not ", first + 1, " or ", first + 2, " where has_bias is ", has_bias, ".");
  require(eps >= 0, "Eps (", eps, ") is negative.");
  return infer(call, has_bias, first);
}

Value sum_of(const DecomposeCall& call, bool has_bias) {
  const Value sum = add(call.input(0), call.input(1));
  return has_bias ? add(sum, call.input(2)) : sum;
}

Values decompose_ln(const DecomposeCall& call) {
  const auto& [has_bias, eps] = call.attrs<FusedResidualLnAttrs>();
  const int64_t gamma = has_bias ? 3 : 2;
  const Value sum = sum_of(call, has_bias);
  return {layer_norm(sum, call.input(gamma), call.input(gamma + 1), {.axis = -1, .eps = eps}), sum};
}

Values decompose_rms(const DecomposeCall& call) {
  const auto& [has_bias, eps] = call.attrs<FusedResidualRmsNormAttrs>();
  const Value sum = sum_of(call, has_bias);
  Values operands{sum};
  for (int64_t i = has_bias ? 3 : 2; i < call.num_inputs(); ++i) operands.push_back(call.input(i));
  return {rms_norm(operands, {.axis = -1, .eps = eps}), sum};
}

bool mixes_last(const Attrs&, int64_t rank, int64_t axis) { return axis == rank - 1; }

constexpr OpDef fused(std::string_view name, int min_inputs, Types (*rule)(const InferCall&),
                      Values (*decompose)(const DecomposeCall&), std::string_view doc) {
  return {.name = name,
          .category = "Fused",
          .min_inputs = min_inputs,
          .max_inputs = 5,
          .infer = rule,
          .decompose = decompose,
          .mixes_axis = mixes_last,
          .traits = {.in_place = 0b11},
          .doc = doc};
}

}  // namespace

constinit const Op<FusedResidualLnAttrs> fused_residual_ln{
    fused("fused_residual_ln", 4, infer_ln, decompose_ln,
          "layer_norm(x + residual [+ bias]) over the last axis, and the sum itself.")};
constinit const Op<FusedResidualRmsNormAttrs> fused_residual_rms_norm{
    fused("fused_residual_rms_norm", 3, infer_rms, decompose_rms,
          "rms_norm(x + residual [+ bias]) over the last axis, and the sum itself.")};

}  // namespace rlx::ops
