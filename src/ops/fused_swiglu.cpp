#include "rlx/ops/fused_swiglu.h"

#include "ops/infer.h"
#include "ops/matmul.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/narrow.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  TensorType y = call.input(0);
  require_float(y);
  require(y.rank() >= 1, "Operand rank (0) is less than 1.");
  Dim& last = y.shape[y.rank() - 1];
  require(!last.is_static() || last.value() % 2 == 0, "Last size (", last, ") is odd: it is not up and gate.");
  last = call.symbols.div(last, Dim(2));
  y.dtype = call.attrs<FusedSwigluAttrs>().cast_to.value_or(y.dtype);
  return y;
}

static Values decompose(const DecomposeCall& call) {
  const Value& x = call.input(0);
  const auto& attrs = call.attrs<FusedSwigluAttrs>();
  const Dim half = x.graph().symbols().div(x.shape()[x.type().rank() - 1], Dim(2));
  const Value first = narrow(x, {.axis = -1, .start = 0, .len = half});
  const Value second = narrow(x, {.axis = -1, .start = half, .len = half});
  const Value y = attrs.gate_first ? second * silu(first) : first * silu(second);
  return {attrs.cast_to ? cast(y, {.to = *attrs.cast_to}) : y};
}

constinit const Op<FusedSwigluAttrs> fused_swiglu{
    {.name = "fused_swiglu",
     .category = "Fused",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .decompose = decompose,
     .mixes_axis = mixes_last_axis,
     .doc = "up * silu(gate); up is the first half of the last axis and gate the second, or the other way round."}};

}  // namespace rlx::ops
