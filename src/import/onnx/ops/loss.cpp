// Losses over classes: axis 1 of the input, which the target leaves out.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// -log_prob at the target's class, weighted and reduced. Targets equal to `ignore_index` do not count.
Value likelihood_loss(OnnxNode& n, const Value& log_prob) {
  const int64_t rank = log_prob.shape().rank();
  require(rank >= 2, "A tensor of rank 2 or more is expected, not of ", rank, ".");
  const Value target = cast_to(n.input(1), DType::I64);
  const Value zero = scalar_like(n, log_prob, 0);
  const Value classes = along_axis(count_up(n, log_prob.shape()[1]), 1, rank);
  const Value hit = ops::eq(classes, unsqueeze(target, {1}));
  Value loss = -ops::reduce_sum(ops::where(hit, log_prob, zero), {.axes = {1}, .keep_dim = false});
  std::optional<Value> weights;
  if (n.has(2)) {
    // An ignored target may be no class at all.
    const Value limit = size_as_scalar(n, log_prob.shape()[1]);
    const Value lowest = n.scalar(0, DType::I64);
    const Value inside = ops::where(ops::lt(target, limit), ops::max(target, lowest), lowest);
    weights = ops::gather(cast_to(n.input(2), log_prob.dtype()), inside, {.axis = 0});
  }
  if (n.has_attr("ignore_index")) {
    const Value ignored = ops::eq(target, n.constant(Tensor::i64({}, {n.required_int("ignore_index")})));
    const Value counted = weights ? *weights : scalar_like(n, log_prob, 1);
    weights = ops::where(ignored, zero, counted);
    loss = ops::where(ignored, zero, loss);
  }
  if (weights) loss = loss * *weights;
  const std::string reduction = n.attr("reduction", "mean");
  if (reduction == "none") return loss;
  require(reduction == "sum" || reduction == "mean", "The reduction '", reduction, "' is not known.");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank - 1; ++i) axes.push_back(i);
  if (reduction == "mean" && !weights) return ops::reduce_mean(loss, {.axes = axes, .keep_dim = false});
  const Value sum = ops::reduce_sum(loss, {.axes = axes, .keep_dim = false});
  if (reduction == "sum") return sum;
  return sum / ops::reduce_sum(*weights, {.axes = axes, .keep_dim = false});
}

Built negative_log_likelihood_loss(OnnxNode& n) {
  return in_f32(n.input(0), [&](const Value& x) { return likelihood_loss(n, x); });
}

Built softmax_cross_entropy_loss(OnnxNode& n) {
  const DType dtype = n.input(0).dtype();
  const Value x = cast_to(n.input(0), dtype == DType::F64 ? DType::F64 : DType::F32);
  const Value shifted = x - ops::reduce_max(x, {.axes = {1}, .keep_dim = true});
  const Value sum = ops::reduce_sum(ops::exp(shifted), {.axes = {1}, .keep_dim = true});
  const Value log_prob = shifted - ops::log(sum);
  const Value loss = likelihood_loss(n, log_prob);
  return Values{cast_to(loss, dtype), cast_to(log_prob, dtype)};
}

}  // namespace

Rows loss_rows() {
  return {
      {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood_loss},
      {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy_loss},
  };
}

}  // namespace rlx::onnx
