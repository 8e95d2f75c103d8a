// Normalisations that are compositions, and pooling over everything.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

DType wide(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

struct Moments {
  Value mean, variance;  // axes kept
};

Moments moments(const Value& x, const std::vector<int64_t>& axes) {
  const Value mean = ops::reduce_mean(x, {.axes = axes, .keep_dim = true});
  const Value centered = x - mean;
  return {mean, ops::reduce_mean(centered * centered, {.axes = axes, .keep_dim = true})};
}

// Channels are axis 1. What is known before the run folds to one factor and one summand per channel.
Built batch_normalization(OnnxNode& n) {
  const Value input = n.input(0);
  const DType dtype = wide(input.dtype());
  const Value x = cast_to(input, dtype);
  const int64_t rank = x.shape().rank();
  require(rank >= 2, "A tensor of rank 2 or more is expected, not of ", rank, ".");
  const bool spatial = n.opset() >= 9 || n.attr("spatial", true);
  // A per-channel vector as a tensor that broadcasts with x; without `spatial` there is one for every element.
  const auto aligned = [&](const Value& v) {
    const Value w = cast_to(v, dtype);
    return spatial ? along_axis(w, 1, rank) : unsqueeze(w, {0});
  };
  const Value scale = aligned(n.input(1)), bias = aligned(n.input(2));
  const Value given_mean = aligned(n.input(3)), given_variance = aligned(n.input(4));
  const bool training = n.opset() >= 14 ? n.attr("training_mode", false) : n.wants(1);
  const Value eps = n.scalar(n.attr("epsilon", 1e-5f), dtype);
  std::vector<int64_t> axes = spatial ? axes_from(2, rank) : std::vector<int64_t>();
  axes.insert(axes.begin(), 0);
  Moments used{given_mean, given_variance};
  if (training) used = moments(x, axes);
  const Value factor = scale / ops::sqrt(used.variance + eps);
  const Value shift = bias - used.mean * factor;
  const Value y = cast_to(x * factor + shift, input.dtype());
  if (!training) return y;
  const double momentum = n.attr("momentum", 0.9f);
  const auto running = [&](const Value& old, const Value& now, int64_t like) {
    const Value kept = old * n.scalar(momentum, dtype);
    const Value next = kept + now * n.scalar(1 - momentum, dtype);
    return cast_to(reshape_to(next, n.input(like).shape().dims()), n.input(like).dtype());
  };
  const auto saved = [&](const Value& now, int64_t like) {
    return cast_to(reshape_to(now, n.input(like).shape().dims()), n.input(like).dtype());
  };
  return Values{y, running(given_mean, used.mean, 3), running(given_variance, used.variance, 4), saved(used.mean, 3),
                saved(used.variance, 4)};
}

// Every channel of every image by itself: a group per channel.
Built instance_normalization(OnnxNode& n) {
  const Value x = n.input(0);
  require(x.shape().rank() >= 2, "A tensor of rank 2 or more is expected, not of ", x.shape().rank(), ".");
  const Value scale = cast_to(n.input(1), x.dtype()), bias = cast_to(n.input(2), x.dtype());
  return ops::group_norm(x, scale, bias, {.num_groups = x.shape()[1].value(), .eps = n.attr("epsilon", 1e-5f)});
}

Built lp_normalization(OnnxNode& n) {
  const int64_t axis = n.attr("axis", -1), p = n.attr("p", 2);
  require(p == 1 || p == 2, "The norm's order is ", p, "; 1 and 2 are possible.");
  return in_f32(n.input(0), [&](const Value& x) {
    const Value parts = p == 1 ? ops::abs(x) : x * x;
    Value norm = ops::reduce_sum(parts, {.axes = {axis}, .keep_dim = true});
    if (p == 2) norm = ops::sqrt(norm);
    const Value zero = scalar_like(n, x, 0);
    return ops::where(ops::eq(norm, zero), zero, x / norm);
  });
}

// The sum of squares over neighbouring channels, one shifted copy per neighbour.
Built lrn(OnnxNode& n) {
  const int64_t size = n.required_int("size");
  require(size > 0 && size <= 4096, "The number of channels (", size, ") is not between 1 and 4096.");
  const double alpha = n.attr("alpha", 1e-4f), beta = n.attr("beta", 0.75f), bias = n.attr("bias", 1.0f);
  return in_f32(n.input(0), [&](const Value& x) {
    require(x.shape().rank() >= 2, "A tensor of rank 2 or more is expected, not of ", x.shape().rank(), ".");
    const Value padded = pad_axis(n, x * x, 1, (size - 1) / 2, size / 2);
    const Dim channels = x.shape()[1];
    Value sum = ops::narrow(padded, {.axis = 1, .start = 0, .len = channels});
    for (int64_t i = 1; i < size; ++i) sum = sum + ops::narrow(padded, {.axis = 1, .start = i, .len = channels});
    const Value base = sum * scalar_like(n, x, alpha / static_cast<double>(size)) + scalar_like(n, x, bias);
    return x / ops::pow(base, scalar_like(n, x, beta));
  });
}

Built mean_variance_normalization(OnnxNode& n) {
  const std::vector<int64_t> axes = n.attr("axes", std::vector<int64_t>{0, 2, 3});
  return in_f32(n.input(0), [&](const Value& x) {
    const auto [mean, variance] = moments(x, axes);
    const Value below = ops::sqrt(variance) + scalar_like(n, x, 1e-9);
    return (x - mean) / below;
  });
}

// Over all axes after the channels.
template <const Op<ops::ReduceAttrs>& op>
Built global_pool(OnnxNode& n) {
  const Value x = n.input(0);
  return op(x, {.axes = axes_from(2, x.shape().rank()), .keep_dim = true});
}

Built global_lp_pool(OnnxNode& n) {
  const double p = n.opset() < 2 ? n.attr("p", 2.0f) : static_cast<double>(n.attr("p", 2));
  return in_f32(n.input(0), [&](const Value& x) {
    const Value powers = ops::pow(ops::abs(x), scalar_like(n, x, p));
    const Value sum = ops::reduce_sum(powers, {.axes = axes_from(2, x.shape().rank()), .keep_dim = true});
    return ops::pow(sum, scalar_like(n, x, 1 / p));
  });
}

}  // namespace

Rows normalize_rows() {
  return {
      {"BatchNormalization", 1, batch_normalization},
      {"GlobalAveragePool", 1, global_pool<ops::reduce_mean>},
      {"GlobalLpPool", 1, global_lp_pool},
      {"GlobalMaxPool", 1, global_pool<ops::reduce_max>},
      {"InstanceNormalization", 1, instance_normalization},
      {"LRN", 1, lrn},
      {"LpNormalization", 1, lp_normalization},
      {"MeanVarianceNormalization", 9, mean_variance_normalization},
  };
}

}  // namespace rlx::onnx
