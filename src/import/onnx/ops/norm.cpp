// Normalisation over trailing axes or groups of channels, and ONNX Runtime's fusions of it with the sum before it.
#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

Shape trailing(const Shape& shape, int64_t axis) { return Shape(std::vector<Dim>(shape.begin() + axis, shape.end())); }

std::vector<int64_t> axes_from(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

// The type statistics are computed and returned in.
DType stash_of(OnnxNode& n) {
  return storage_of(static_cast<ElemType>(n.attr("stash_type", static_cast<int64_t>(ElemType::kFloat))));
}

struct Statistics {
  Value mean, scale;  // scale: 1 / sqrt(variance + eps); both with sizes of 1 where x is reduced
};

// Of `centered` the variance is that of x around its mean, otherwise the mean of squares.
Statistics statistics(OnnxNode& n, const Value& x, int64_t axis, float eps, bool centered) {
  const std::vector<int64_t> axes = axes_from(axis, x.shape().rank());
  const Value mean = ops::reduce_mean(x, {.axes = axes, .keep_dim = true});
  const Value about = centered ? x - mean : x;
  const Value variance = ops::reduce_mean(about * about, {.axes = axes, .keep_dim = true});
  return {mean, scalar_like(n, x, 1) / ops::sqrt(variance + scalar_like(n, x, eps))};
}

// A factor or summand fits the catalogue's ops when it does not vary along the axes before `axis`.
bool fits(const Value& parameter, const Shape& x, int64_t axis) { return parameter.shape().rank() <= x.rank() - axis; }

// Layer (or with `centered` off, root mean square) normalisation of x.
Value normalized(OnnxNode& n, const Value& x, int64_t axis, float eps, bool centered, const Value& gamma,
                 const Value* beta) {
  const Shape part = trailing(x.shape(), axis);
  if (fits(gamma, x.shape(), axis) && (!beta || fits(*beta, x.shape(), axis))) {
    const Value factor = expand_to(cast_to(gamma, x.dtype()), part);
    if (!centered && !beta) return ops::rms_norm(x, factor, {.axis = axis, .eps = eps});
    const Value summand = beta ? expand_to(cast_to(*beta, x.dtype()), part) : expand_to(scalar_like(n, x, 0), part);
    return centered ? ops::layer_norm(x, factor, summand, {.axis = axis, .eps = eps})
                    : ops::rms_norm(x, factor, summand, {.axis = axis, .eps = eps});
  }
  const Value wide = x.dtype() == DType::F64 ? x : cast_to(x, DType::F32);
  const Statistics s = statistics(n, wide, axis, eps, centered);
  const Value unit = centered ? (wide - s.mean) * s.scale : wide * s.scale;
  Value y = cast_to(unit, x.dtype()) * cast_to(gamma, x.dtype());
  if (beta) y = y + cast_to(*beta, x.dtype());
  return y;
}

Built layer_normalization(OnnxNode& n) {
  const Value x = n.input(0), gamma = n.input(1);
  const int64_t axis = normalize_axis(n.attr("axis", -1), x.shape().rank());
  const float eps = n.attr("epsilon", 1e-5f);
  const std::optional<Value> beta = n.has(2) ? std::optional(n.input(2)) : std::nullopt;
  Values results = {normalized(n, x, axis, eps, true, gamma, beta ? &*beta : nullptr)};
  if (n.num_outputs() > 1) {
    const Statistics s = statistics(n, cast_to(x, stash_of(n)), axis, eps, true);
    results.insert(results.end(), {s.mean, s.scale});
  }
  return results;
}

// RMSNormalization, and ONNX Runtime's older SimplifiedLayerNormalization, whose result has the type of the factor.
Built rms_normalization(OnnxNode& n) {
  const Value x = n.input(0), gamma = n.input(1);
  const int64_t axis = normalize_axis(n.attr("axis", -1), x.shape().rank());
  const float eps = n.attr("epsilon", 1e-5f);
  const DType wide = promote(x.dtype(), gamma.dtype());
  Values results = {cast_to(normalized(n, cast_to(x, wide), axis, eps, false, gamma, nullptr), gamma.dtype())};
  if (n.num_outputs() > 1) results.push_back(statistics(n, cast_to(x, stash_of(n)), axis, eps, false).scale);
  return results;
}

// Opset 18 has a factor and a summand per group, opset 21 per channel.
Built group_normalization(OnnxNode& n) {
  const Value x = n.input(0);
  require(x.shape().rank() >= 2, "X has rank ", x.shape().rank(), "; 2 or more is expected.");
  const int64_t groups = n.required_int("num_groups");
  require(groups >= 1, "num_groups (", groups, ") is less than 1.");
  const Dim channels = x.shape()[1];
  const auto per_channel = [&](Value v) {
    v = cast_to(v, x.dtype());
    if (n.opset() >= 21) return v;
    const Dim each = n.symbols().div(channels, groups);
    return reshape_to(expand_to(reshape_to(v, {groups, 1}), Shape({groups, each})), {channels});
  };
  const Value gamma = per_channel(n.input(1)), beta = per_channel(n.input(2));
  return ops::group_norm(x, gamma, beta, {.num_groups = groups, .eps = n.attr("epsilon", 1e-5f)});
}

// ---- com.microsoft

// Results: the normalised sum, its mean, its 1 / sqrt(variance + eps), the sum.
Built skip_layer_norm(OnnxNode& n, bool centered, int64_t beta_input, int64_t bias_input) {
  Value sum = n.input(0) + n.input(1);
  if (n.has(bias_input)) sum = sum + n.input(bias_input);
  const int64_t axis = normalize_axis(-1, sum.shape().rank());
  const float eps = n.attr("epsilon", 1e-12f);
  const std::optional<Value> beta =
      beta_input >= 0 && n.has(beta_input) ? std::optional(n.input(beta_input)) : std::nullopt;
  const Value y = normalized(n, sum, axis, eps, centered, n.input(2), beta ? &*beta : nullptr);
  if (n.num_outputs() == 1) return y;
  const Statistics s = statistics(n, cast_to(sum, DType::F32), axis, eps, centered);
  return Values{y, s.mean, s.scale, sum};
}

Built skip_layer_normalization(OnnxNode& n) { return skip_layer_norm(n, true, 3, 4); }
Built skip_simplified_layer_normalization(OnnxNode& n) { return skip_layer_norm(n, false, -1, 3); }

// The sum of the embeddings of words, positions and segments, normalised.
Built embed_layer_normalization(OnnxNode& n) {
  const Value ids = n.input(0);
  require_rank(ids, 2, "input_ids");
  const Dim batch = ids.shape()[0], length = ids.shape()[1];
  Value sum = ops::gather(n.input(2), ids, {.axis = 0});
  const Value positions = n.input(3);
  sum = sum + (n.has(8) ? ops::gather(positions, n.input(8), {.axis = 0})
                        : ops::narrow(positions, {.axis = 0, .start = 0, .len = length}));
  if (n.has(1) && n.has(4)) sum = sum + ops::gather(n.input(4), n.input(1), {.axis = 0});
  const Value beta = n.input(6);
  const Value y = normalized(n, sum, 2, n.attr("epsilon", 1e-12f), true, n.input(5), &beta);
  if (n.num_outputs() == 1) return y;
  // How many words of each row are there; 0 when there is no mask.
  Value count = expand_to(n.scalar(0, DType::I32), Shape({batch}));
  if (n.has(7)) {
    const Value mask = cast_to(n.input(7), DType::I32);
    const Value present = cast_to(ops::eq(mask, scalar_like(n, mask, 1)), DType::I32);
    count = ops::reduce_sum(present, {.axes = {1}});
  }
  return Values{y, count, sum};
}

}  // namespace

Rows norm_rows() {
  return {
      {"GroupNormalization", 18, group_normalization},
      {"LayerNormalization", 1, layer_normalization},  // since 17; ONNX Runtime writes it in older models, too
      {"RMSNormalization", 23, rms_normalization},
      {"SimplifiedLayerNormalization", 1, rms_normalization},  // ONNX Runtime writes it in this domain too
  };
}

Rows contrib_norm_rows() {
  return {
      {"EmbedLayerNormalization", 1, embed_layer_normalization},
      {"SimplifiedLayerNormalization", 1, rms_normalization},
      {"SkipLayerNormalization", 1, skip_layer_normalization},
      {"SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_normalization},
  };
}

}  // namespace rlx::onnx
