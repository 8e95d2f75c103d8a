#include "rlx/ops/integer.h"

#include "ops/conv_types.h"
#include "ops/infer.h"
#include "ops/matmul.h"

namespace rlx::ops {

static void require_byte(const TensorType& t, std::string_view what) {
  require(t.dtype == DType::I8 || t.dtype == DType::U8, what, " dtype (", t.dtype, ") is not i8 or u8.");
}

static bool is_one(const TensorType& t) {
  for (const Dim& d : t.shape)
    if (!d.is(1)) return false;
  return t.rank() <= 1;
}

// Operand i, where it is there: one number, one per index of `axis` of t, or t's shape with one element along the axis
// that is summed.
static void require_zero(const InferCall& call, int64_t i, const TensorType& t, int64_t axis, int64_t summed) {
  if (i >= call.num_inputs()) return;
  const TensorType& zero = call.input(i);
  require_dtype(zero, t.dtype, "Zero point");
  if (is_one(zero)) return;
  if (zero.rank() == 1) return require_shape(zero, {t.dim(axis)}, "Zero point");
  Shape shape = t.shape;
  shape[summed] = 1;
  require_shape(zero, shape, "Zero point");
}

static Types infer_matmul(const InferCall& call) {
  const TensorType &a = call.input(0), &b = call.input(1);
  require_byte(a, "Operand a");
  require_byte(b, "Operand b");
  const TensorType y = matmul_type({a.shape, DType::I32}, {b.shape, DType::I32}, call.symbols);
  require_zero(call, 2, a, a.rank() - 2, a.rank() - 1);
  require_zero(call, 3, b, b.rank() - 1, b.rank() - 2);
  return y;
}

static Types infer_conv(const InferCall& call) {
  const auto& a = call.attrs<ConvAttrs>();
  const TensorType &x = call.input(0), &w = call.input(1);
  require_byte(x, "Operand x");
  require_byte(w, "Weight");
  TensorType y{conv_shape(x, w, window_of(a), a.groups, call.symbols), DType::I32};
  if (call.num_inputs() > 2) {
    require_dtype(call.input(2), x.dtype, "Zero point");
    require(is_one(call.input(2)), "Zero point shape (", call.input(2).shape, ") of x is not that of one number.");
  }
  if (call.num_inputs() > 3) {
    require_dtype(call.input(3), w.dtype, "Zero point");
    if (!is_one(call.input(3))) require_shape(call.input(3), {w.dim(0)}, "Zero point");
  }
  return y;
}

constinit const Op<ConvAttrs> conv_integer{
    {.name = "conv_integer",
     .category = "Quantised",
     .min_inputs = 2,
     .max_inputs = 4,
     .infer = infer_conv,
     .mixes_axis = mixes_all_but_batch,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc =
         "conv of bytes less their zero points, exact in i32 (sums wrap); padding has the value of x's zero point."}};

constinit const Op<NoAttrs> matmul_integer{
    {.name = "matmul_integer",
     .category = "Quantised",
     .min_inputs = 2,
     .max_inputs = 4,
     .infer = infer_matmul,
     .mixes_axis = mixes_last_axis,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "matmul of bytes less their zero points (per tensor, row of a or column of b), exact in i32; sums wrap."}};

}  // namespace rlx::ops
