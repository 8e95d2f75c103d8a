#include "rlx/ops/reduce.h"

#include <algorithm>

#include "ops/infer.h"

namespace rlx::ops {

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  const auto& [axes, keep_dim] = call.attrs<ReduceAttrs>();
  require(x.dtype != DType::Bool, "Operand dtype (bool) has no arithmetic; cast it.");
  std::vector<bool> reduced(static_cast<size_t>(x.rank()), false);
  for (const int64_t a : axes) {
    const auto axis = static_cast<size_t>(normalize_axis(a, x.rank()));
    require(!reduced[axis], "Axes ", axes, " name axis (", axis, ") twice.");
    reduced[axis] = true;
  }
  TensorType y{{}, x.dtype};
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!reduced[static_cast<size_t>(d)])
      y.shape.push_back(x.dim(d));
    else if (keep_dim)
      y.shape.push_back(1);
  }
  return y;
}

static Types infer_real(const InferCall& call) {
  require(!is_complex(call.input(0).dtype), "Op '", call.op().name, "' is not defined for c64.");
  return infer(call);
}

static bool mixes_axis(const Attrs& attrs, int64_t rank, int64_t axis) {
  const std::vector<int64_t>& axes = attrs.as<ReduceAttrs>().axes;
  return std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return normalize_axis(a, rank) == axis; });
}

static constexpr OpDef reduce(std::string_view name, Types (*rule)(const InferCall&), std::string_view doc) {
  return {.name = name,
          .category = "Reductions",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = rule,
          .mixes_axis = mixes_axis,
          .traits = {.reduction = true},
          .doc = doc};
}

constinit const Op<ReduceAttrs> reduce_sum{reduce("reduce_sum", infer, "Sum along axes; of nothing 0. Integers wrap.")};
constinit const Op<ReduceAttrs> reduce_mean{
    reduce("reduce_mean", infer,
           "Mean along axes; of nothing NaN. Integers are summed exactly and divided toward zero; the mean of no "
           "integers is an error.")};
constinit const Op<ReduceAttrs> reduce_max{
    reduce("reduce_max", infer_real,
           "Largest element along axes, NaN if there is one; of nothing -inf, or the smallest integer.")};
constinit const Op<ReduceAttrs> reduce_min{
    reduce("reduce_min", infer_real,
           "Smallest element along axes, NaN if there is one; of nothing +inf, or the largest integer.")};
constinit const Op<ReduceAttrs> reduce_prod{
    reduce("reduce_prod", infer, "Product along axes; of nothing 1. Integers wrap.")};

const Op<ReduceAttrs>& reduce_op(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return reduce_sum;
    case ReduceKind::kMean: return reduce_mean;
    case ReduceKind::kMax: return reduce_max;
    case ReduceKind::kMin: return reduce_min;
    case ReduceKind::kProd: return reduce_prod;
  }
  fail(ErrorKind::kInternal, "Unknown reduce kind.");
}

}  // namespace rlx::ops
