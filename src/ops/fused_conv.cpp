#include "rlx/ops/fused_conv.h"

#include "ops/conv_types.h"
#include "ops/infer.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/conv.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const auto& a = call.attrs<FusedConvBiasActAttrs>();
  const TensorType y = conv_type(call.input(0), call.input(1), window_of(a), a.groups, call.symbols);
  require_bias(call.input(2), y);
  if (call.num_inputs() > 3) {
    require_same_dtype(y, call.input(3));
    require_shape(call.input(3), y.shape, "Residual");
  }
  if (a.activation == ActivationKind::kNone) return y;
  return infer_types(activation_op(a.activation), {&y, 1}, Attrs(), call.symbols);
}

static Values decompose(const DecomposeCall& call) {
  const auto& a = call.attrs<FusedConvBiasActAttrs>();
  Value y = conv(call.input(0), call.input(1), call.input(2),
                 ConvAttrs{a.kernel_size, a.stride, a.padding, a.dilation, a.groups});
  if (call.num_inputs() > 3) y = y + call.input(3);
  return {activate(y, a.activation)};
}

constinit const Op<FusedConvBiasActAttrs> fused_conv_bias_act{
    {.name = "fused_conv_bias_act",
     .category = "Fused",
     .min_inputs = 3,
     .max_inputs = 4,
     .infer = infer,
     .decompose = decompose,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "act(conv(x, w) + bias + residual), the residual optional."}};

}  // namespace rlx::ops
