#include "models/parts.h"

#include "rlx/ops.h"

namespace rlx::models {

Value ModelParts::param(const std::string& name, const Tensor& data) {
  const auto found = params_.find(name);
  if (found != params_.end()) return found->second;
  weights_.emplace(name, data);
  const Value value = graph_.param(name, data.type());
  params_.emplace(name, value);
  return value;
}

Value ModelParts::weight(const std::string& name) {
  const Weight w = source_.require_weight(name);
  require(!w.scheme && is_float(w.data.dtype()), source_.path(), ": tensor '", name,
          "' is packed; plain numbers are expected.");
  const Value value = param(name, w.data);
  return w.data.dtype() == DType::F32 ? value : ops::cast(value, {.to = DType::F32});
}

Value ModelParts::scalar(float value) { return graph_.constant(Tensor::f32({}, {value})); }

Value ModelParts::embedding(const Value& ids, const std::string& name) {
  const Weight w = source_.require_weight(name);
  require(w.sizes.size() == 2, source_.path(), ": tensor '", name, "' is not a matrix.");
  if (w.scheme) return ops::dequant_gather(param(name, w.data), ids, {.scheme = *w.scheme, .k = w.sizes[1]});
  const Value rows = ops::gather(param(name, w.data), ids, {.axis = 0});
  return w.data.dtype() == DType::F32 ? rows : ops::cast(rows, {.to = DType::F32});
}

Value ModelParts::linear(const Value& x, const std::string& name) {
  const Value y = linear_with(x, name + ".weight");
  return has(name + ".bias") ? y + weight(name + ".bias") : y;
}

Value ModelParts::linear_with(const Value& x, const std::string& name) {
  const Weight w = source_.require_weight(name);
  const Dim& k = x.shape()[static_cast<size_t>(x.type().rank() - 1)];
  require(w.sizes.size() == 2 && k.is(w.sizes[1]), source_.path(), ": tensor '", name, "' (",
          Shape(std::vector<Dim>(w.sizes.begin(), w.sizes.end())), ") does not fit ", k, " columns.");
  if (w.scheme) return ops::dequant_matmul(x, param(name, w.data), {.scheme = *w.scheme});
  Value transposed = ops::transpose(param(name, w.data), {.perm = {1, 0}});
  if (w.data.dtype() != DType::F32) transposed = ops::cast(transposed, {.to = DType::F32});
  return ops::matmul(x, transposed);
}

Value ModelParts::rms_norm(const Value& x, const std::string& name) {
  return ops::rms_norm(x, weight(name + ".weight"), {.eps = norm_eps_});
}

Value ModelParts::layer_norm(const Value& x, const std::string& name) {
  const Value gamma = weight(name + ".weight");
  const Value beta =
      has(name + ".bias") ? weight(name + ".bias") : graph_.constant(Tensor(DType::F32, gamma.shape().sizes()));
  return ops::layer_norm(x, gamma, beta, {.eps = norm_eps_});
}

Value ModelParts::columns(const Value& x, int64_t start, int64_t count) {
  return ops::narrow(x, {.axis = x.type().rank() - 1, .start = start, .len = count});
}

}  // namespace rlx::models
