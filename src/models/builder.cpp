#include "models/builder.h"

#include "rlx/ops.h"

namespace rlx::models {

namespace {

bool same_angles(const RopeConfig& a, const RopeConfig& b) {
  return a.dims == b.dims && a.base == b.base && a.scaling == b.scaling && a.factor == b.factor &&
         a.original_context == b.original_context && a.pair_factors == b.pair_factors &&
         a.attention_factor == b.attention_factor;
}

}  // namespace

DecoderBuilder::DecoderBuilder(const ModelSource& source, DecoderConfig config, CacheOptions cache)
    : source_(source),
      config_(std::move(config)),
      cache_(cache),
      graph_(config_.architecture),
      rows_(Dim::symbol(symbols::kSeq)),
      tokens_(graph_.input("tokens", {{cache.batch, rows_}, DType::I32})),
      positions_(graph_.input("positions", {{cache.batch, rows_}, DType::I32})),
      past_(graph_.input("past", {{cache.batch}, DType::I32})),
      length_(past_ + ops::cast(graph_.dim_value(rows_), {.to = DType::I32})) {}

Value DecoderBuilder::param(const std::string& name, const Tensor& data) {
  const auto found = params_.find(name);
  if (found != params_.end()) return found->second;
  weights_.emplace(name, data);
  const Value value = graph_.param(name, data.type());
  params_.emplace(name, value);
  return value;
}

Value DecoderBuilder::weight(const std::string& name) {
  const Weight w = source_.require_weight(name);
  require(!w.scheme && is_float(w.data.dtype()), source_.path(), ": tensor '", name,
          "' is packed; plain numbers are expected.");
  const Value value = param(name, w.data);
  return w.data.dtype() == DType::F32 ? value : ops::cast(value, {.to = DType::F32});
}

Value DecoderBuilder::scalar(float value) { return graph_.constant(Tensor::f32({}, {value})); }

Value DecoderBuilder::embedding(const Value& ids, const std::string& name) {
  const Weight w = source_.require_weight(name);
  require(w.sizes.size() == 2, source_.path(), ": tensor '", name, "' is not a matrix.");
  if (w.scheme) return ops::dequant_gather(param(name, w.data), ids, {.scheme = *w.scheme, .k = w.sizes[1]});
  const Value rows = ops::gather(param(name, w.data), ids, {.axis = 0});
  return w.data.dtype() == DType::F32 ? rows : ops::cast(rows, {.to = DType::F32});
}

Value DecoderBuilder::linear(const Value& x, const std::string& name) {
  const Value y = linear_with(x, name + ".weight");
  return has(name + ".bias") ? y + weight(name + ".bias") : y;
}

Value DecoderBuilder::linear_with(const Value& x, const std::string& name) {
  const Weight w = source_.require_weight(name);
  const Dim& k = x.shape()[static_cast<size_t>(x.type().rank() - 1)];
  require(w.sizes.size() == 2 && k.is(w.sizes[1]), source_.path(), ": tensor '", name, "' (",
          Shape(std::vector<Dim>(w.sizes.begin(), w.sizes.end())), ") does not fit ", k, " columns.");
  if (w.scheme) return ops::dequant_matmul(x, param(name, w.data), {.scheme = *w.scheme});
  Value transposed = ops::transpose(param(name, w.data), {.perm = {1, 0}});
  if (w.data.dtype() != DType::F32) transposed = ops::cast(transposed, {.to = DType::F32});
  return ops::matmul(x, transposed);
}

Value DecoderBuilder::rms_norm(const Value& x, const std::string& name) {
  return ops::rms_norm(x, weight(name + ".weight"), {.eps = config_.norm_eps});
}

Value DecoderBuilder::layer_norm(const Value& x, const std::string& name) {
  const Value gamma = weight(name + ".weight");
  const Value beta =
      has(name + ".bias") ? weight(name + ".bias") : graph_.constant(Tensor(DType::F32, gamma.shape().sizes()));
  return ops::layer_norm(x, gamma, beta, {.eps = config_.norm_eps});
}

Value DecoderBuilder::rope(const Value& x, const RopeConfig& rope) {
  if (rope.dims == 0) return x;
  const Tables* tables = nullptr;
  for (const Tables& t : tables_)
    if (same_angles(t.config, rope)) tables = &t;
  if (tables == nullptr) {
    const RopeTables made = rope_tables(rope, config_.head_dim, cache_.capacity);
    tables_.push_back({rope, graph_.constant(made.cos), graph_.constant(made.sin)});
    tables = &tables_.back();
  }
  return ops::rope(
      x, tables->cos, tables->sin, positions_,
      {.head_dim = config_.head_dim, .n_rot = rope.dims, .layout = ops::AttentionLayout::kBsf, .style = rope.style});
}

Value DecoderBuilder::head_norm(const Value& x, const std::string& name) {
  const Shape flat = x.shape();
  const int64_t width = flat[2].value();
  const Value heads = ops::reshape(x, {.new_shape = {flat[0], flat[1], width / config_.head_dim, config_.head_dim}});
  return ops::reshape(rms_norm(heads, name), {.new_shape = {flat[0], flat[1], width}});
}

Value DecoderBuilder::attention(int64_t layer, const Value& q, const Value& k, const Value& v,
                                const AttentionOptions& options) {
  const int64_t width = k.shape()[2].value();
  const TensorType cache{{cache_.batch, cache_.capacity, width}, cache_.dtype};
  const auto append = [&](const char* what, const Value& rows) {
    const Value old = graph_.state(str("cache.", layer, ".", what), cache);
    const Value stored = cache_.dtype == rows.dtype() ? rows : ops::cast(rows, {.to = cache_.dtype});
    const Value all = ops::kv_append(old, stored, past_);
    graph_.update(old, all);
    return all;
  };
  const Value keys = append("k", k), values = append("v", v);
  ops::AttentionAttrs attrs{.num_heads = config_.heads,
                            .head_dim = config_.head_dim,
                            .layout = ops::AttentionLayout::kBsf,
                            .mask_kind = ops::MaskKind::kCausal,
                            .score_scale = options.scale,
                            .attn_logit_softcap = options.softcap};
  if (options.window > 0) {
    attrs.mask_kind = ops::MaskKind::kSlidingWindow;
    attrs.window = options.window - 1;  // the query's own key is not counted there
  }
  return ops::attention(q, keys, values, length_, attrs);
}

Value DecoderBuilder::feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation) {
  const Value up = linear(x, prefix + "ffn_up");
  const Value wide = has(prefix + "ffn_gate.weight") ? ops::activate(linear(x, prefix + "ffn_gate"), activation) * up
                                                     : ops::activate(up, activation);
  return linear(wide, prefix + "ffn_down");
}

}  // namespace rlx::models
