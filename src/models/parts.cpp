#include "models/parts.h"

#include "rlx/ops.h"

namespace rlx::models {

namespace {

// A matrix whose rows kernels decode as they read them: packed, or of halves as they are in the file.
struct Rows {
  Scheme scheme;
  Tensor data;  // U8 [bytes]
};
std::optional<Rows> rows_of(const Weight& w) {
  if (w.scheme) return Rows{*w.scheme, w.data};
  const DType dtype = w.data.dtype();
  if (dtype != DType::F16 && dtype != DType::BF16) return std::nullopt;
  const auto owner = std::make_shared<const Tensor>(w.data);
  const auto bytes = static_cast<int64_t>(w.data.bytes().size());
  return Rows{dtype == DType::F16 ? Scheme::kGgufF16 : Scheme::kGgufBf16,
              Tensor::borrow(DType::U8, {bytes}, w.data.bytes(), owner)};
}

}  // namespace

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
  if (const auto rows = rows_of(w))
    return ops::dequant_gather(param(name, rows->data), ids, {.scheme = rows->scheme, .k = w.sizes[1]});
  return ops::gather(weight(name), ids, {.axis = 0});
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
  if (const auto rows = rows_of(w)) return ops::dequant_matmul(x, param(name, rows->data), {.scheme = rows->scheme});
  return ops::matmul(x, ops::transpose(weight(name), {.perm = {1, 0}}));
}

Value ModelParts::expert_linear(const Value& x, const std::string& name, const Value& choice) {
  const std::string full = name + ".weight";
  const Weight w = source_.require_weight(full);
  require(w.sizes.size() == 3 && w.sizes[0] > 0 && x.shape()[1].is(w.sizes[2]), source_.path(), ": tensor '", full,
          "' (", Shape(std::vector<Dim>(w.sizes.begin(), w.sizes.end())), ") is not that of experts for ", x.shape()[1],
          " columns.");
  if (const auto rows = rows_of(w))
    return ops::dequant_grouped_matmul(x, param(full, rows->data), choice, {.scheme = rows->scheme, .n = w.sizes[1]});
  return ops::grouped_matmul(x, ops::transpose(weight(full), {.perm = {0, 2, 1}}), choice);
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
