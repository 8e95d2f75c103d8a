#include "rlx/ops/conv.h"

#include "backends/webgpu/lowering/conv_problem.h"
#include "backends/webgpu/lowering/lowerings.h"
#include "rlx/ops/conv_backward.h"
#include "rlx/ops/fused_conv.h"

namespace rlx::webgpu {

// An operand without elements has no bytes to bind: a result of it runs on the host.
bool has_elements(const LowerSignature& s, const Device&) {
  for (const TensorType& t : s.inputs)
    for (int64_t i = 0; i < t.rank(); ++i)
      if (t.dim(i).is(0)) return false;
  return true;
}

void lower_conv(LowerCall& call) {
  const auto& a = call.attrs<ops::ConvAttrs>();
  ConvOperands o{.x = call.read(0), .w = call.read(1), .y = call.write(0)};
  if (call.num_inputs() > 2) o.bias = call.read(2);
  emit_conv(call, forward_problem(ops::window_of(a), a.groups, call.input_type(0), call.output_type(0)), o);
}

void lower_fused_conv_bias_act(LowerCall& call) {
  const auto& a = call.attrs<ops::FusedConvBiasActAttrs>();
  ConvOperands o{.x = call.read(0), .w = call.read(1), .y = call.write(0), .bias = call.read(2)};
  if (call.num_inputs() > 3) o.residual = call.read(3);
  o.activation = a.activation;
  emit_conv(call, forward_problem(ops::window_of(a), a.groups, call.input_type(0), call.output_type(0)), o);
}

void lower_conv_transpose(LowerCall& call) {
  const auto& a = call.attrs<ops::ConvTransposeAttrs>();
  ConvOperands o{.x = call.read(0), .w = call.read(1), .y = call.write(0)};
  if (call.num_inputs() > 2) o.bias = call.read(2);
  emit_conv(call, transposed_problem(ops::window_of(a), a.groups, call.input_type(0), call.output_type(0)), o);
}

// The transpose of the forward convolution, with the same weight.
void lower_conv2d_backward_input(LowerCall& call) {
  const auto& a = call.attrs<ops::Conv2dBackwardInputAttrs>();
  const ConvOperands o{.x = call.read(0), .w = call.read(1), .y = call.write(0), .extent_safe = false};
  emit_conv(call, transposed_problem(ops::window_of(a), a.groups, call.input_type(0), call.output_type(0)), o);
}

}  // namespace rlx::webgpu
