#include "models/builder.h"

#include <algorithm>
#include <numeric>

#include "rlx/ops.h"

namespace rlx::models {

namespace {

bool same_angles(const RopeConfig& a, const RopeConfig& b) {
  return a.dims == b.dims && a.base == b.base && a.scaling == b.scaling && a.factor == b.factor &&
         a.original_context == b.original_context && a.pair_factors == b.pair_factors &&
         a.attention_factor == b.attention_factor;
}

}  // namespace

CacheType cache_type(std::string_view name) {
  const auto names = names_of(CacheType{});
  const auto found = std::ranges::find(names, name);
  require(found != names.end(), "'", name, "' is not a way to keep keys and values: f32, f16 or q8_0.");
  return static_cast<CacheType>(found - names.begin());
}

// max(x, 0) + ln(1 + e^-|x|): neither part overflows.
Value softplus(const Value& x) {
  const Value one = x.graph().constant(Tensor::f32({}, {1}));
  return ops::relu(x) + ops::log(one + ops::exp(-ops::abs(x)));
}

DecoderBuilder::DecoderBuilder(const ModelSource& source, DecoderConfig config, CacheOptions cache)
    : ModelParts(source, config.architecture, config.norm_eps),
      config_(std::move(config)),
      cache_(cache),
      rows_(Dim::symbol(symbols::kSeq)),
      tokens_(graph_.input("tokens", {{cache.batch, rows_}, DType::I32})),
      positions_(graph_.input("positions", {{cache.batch, rows_}, DType::I32})),
      past_(graph_.input("past", {{cache.batch}, DType::I32})),
      length_(past_ + ops::cast(graph_.dim_value(rows_), {.to = DType::I32})) {
  RopeConfig& rope = config_.rope;
  if (!rope.long_factors.empty() && cache.context > rope.original_context) rope.pair_factors = rope.long_factors;
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

DecoderBuilder::Qkv DecoderBuilder::qkv(const Value& x, int64_t i) {
  const std::string layer = str("blk.", i, ".");
  const int64_t wide = config_.heads * config_.head_dim;
  const int64_t narrow = config_.kv_heads[static_cast<size_t>(i)] * config_.head_dim;
  require(narrow > 0, source_.path(), ": attention.head_count_kv of layer ", i, " is 0.");
  const auto check = [&](const Value& y, int64_t width) {
    require(y.shape()[2].is(width), source_.path(), ": layer ", i, " projects to ", y.shape()[2], " columns, not ",
            width, ".");
    return y;
  };
  const auto parts = [&]() -> Qkv {
    if (!has(layer + "attn_qkv.weight"))
      return {check(linear(x, layer + "attn_q"), wide), check(linear(x, layer + "attn_k"), narrow),
              check(linear(x, layer + "attn_v"), narrow)};
    const Value all = check(linear(x, layer + "attn_qkv"), wide + 2 * narrow);
    return {columns(all, 0, wide), columns(all, wide, narrow), columns(all, wide + narrow, narrow)};
  };
  Qkv out = parts();
  if (has(layer + "attn_q_norm.weight")) {
    out.q = head_norm(out.q, layer + "attn_q_norm");
    out.k = head_norm(out.k, layer + "attn_k_norm");
  }
  const RopeConfig& angles = config_.rope_of(i);
  out.q = rope(out.q, angles);
  out.k = rope(out.k, angles);
  return out;
}

Value DecoderBuilder::attention(int64_t i, const Qkv& qkv) {
  return cache_.type == CacheType::kF32 ? dense_attention(i, qkv) : paged_attention(i, qkv);
}

Value DecoderBuilder::dense_attention(int64_t i, const Qkv& qkv) {
  const TensorType cache{{cache_.batch, cache_.capacity, qkv.k.shape()[2]}, DType::F32};
  const auto append = [&](const char* what, const Value& rows) {
    const Value old = graph_.state(str("cache.", i, ".", what), cache);
    const Value all = ops::kv_append(old, rows, past_);
    graph_.update(old, all);
    return all;
  };
  const Value keys = append("k", qkv.k), values = append("v", qkv.v);
  const int64_t window = config_.window_of(i);
  return ops::attention(qkv.q, keys, values, length_,
                        {.num_heads = config_.heads,
                         .head_dim = config_.head_dim,
                         .layout = ops::AttentionLayout::kBsf,
                         .mask_kind = window > 0 ? ops::MaskKind::kSlidingWindow : ops::MaskKind::kCausal,
                         .window = std::max<int64_t>(window - 1, 0),  // the query's own key is not counted there
                         .score_scale = config_.attention_scale,
                         .attn_logit_softcap = config_.attention_softcap});
}

// Each sequence has one page of all its rows.
Value DecoderBuilder::paged_attention(int64_t i, const Qkv& qkv) {
  const auto format = cache_.type == CacheType::kQ8 ? ops::KvFormat::kQ8 : ops::KvFormat::kFloat;
  const int64_t size = config_.head_dim, kv_heads = qkv.k.shape()[2].value() / size;
  require(format != ops::KvFormat::kQ8 || size % 32 == 0, source_.path(), ": heads of ", size,
          " columns cannot be kept as q8_0, that needs a multiple of 32; f16 works.");
  const TensorType cache{{cache_.batch, cache_.capacity, kv_heads, ops::kv_row_elements(format, size)},
                         format == ops::KvFormat::kQ8 ? DType::U32 : DType::F16};
  if (!pages_) {
    std::vector<int32_t> pages(static_cast<size_t>(cache_.batch));
    std::iota(pages.begin(), pages.end(), 0);
    pages_ = graph_.constant(Tensor::i32({cache_.batch, 1}, pages));
  }
  const auto by_heads = [&](const Value& x, int64_t heads) {
    return ops::reshape(x, {.new_shape = {cache_.batch, rows_, heads, size}});
  };
  const auto append = [&](const char* what, const Value& rows) {
    const Value old = graph_.state(str("cache.", i, ".", what), cache);
    const Value all = ops::paged_kv_append(old, by_heads(rows, kv_heads), *pages_, past_, {.format = format});
    graph_.update(old, all);
    return all;
  };
  const Value keys = append("k", qkv.k), values = append("v", qkv.v);
  const int64_t window = config_.window_of(i);
  const Value y =
      ops::paged_attention(by_heads(qkv.q, config_.heads), keys, values, *pages_, length_,
                           {.num_heads = config_.heads,
                            .head_dim = size,
                            .mask_kind = window > 0 ? ops::MaskKind::kSlidingWindow : ops::MaskKind::kCausal,
                            .window = std::max<int64_t>(window - 1, 0),
                            .score_scale = config_.attention_scale,
                            .attn_logit_softcap = config_.attention_softcap,
                            .format = format});
  return ops::reshape(y, {.new_shape = {cache_.batch, rows_, config_.heads * size}});
}

Value DecoderBuilder::recurrent_state(const std::string& name, std::vector<int64_t> sizes) {
  recurrent_ = true;
  sizes.insert(sizes.begin(), cache_.batch);
  const Value old = graph_.state(name, {Shape(std::vector<Dim>(sizes.begin(), sizes.end())), DType::F32});
  states_.emplace(name, old);
  std::vector<Dim> broadcast(sizes.size(), 1);
  broadcast[0] = cache_.batch;
  const Value begins = ops::le(past_, graph_.constant(Tensor::i32({}, {0})));
  return ops::where(ops::reshape(begins, {.new_shape = broadcast}), scalar(0), old);
}

void DecoderBuilder::updated(const std::string& name, const Value& value) { graph_.update(states_.at(name), value); }

const Value& DecoderBuilder::in_use() {
  if (!in_use_) in_use_ = graph_.input("in_use", {{cache_.batch, rows_}, DType::F32});
  return *in_use_;
}

Value DecoderBuilder::zero_unused(const Value& x) {
  if (cache_.batch == 1) return x;
  std::vector<Dim> shape(static_cast<size_t>(x.type().rank()), 1);
  shape[0] = cache_.batch;
  shape[1] = rows_;
  return x * ops::reshape(in_use(), {.new_shape = shape});
}

Value DecoderBuilder::causal_conv(int64_t i, const Value& x, const std::string& name) {
  const Value w = weight(name + ".weight");
  const int64_t channels = x.shape()[2].value(), kernel = config_.recurrent.kernel;
  require(w.shape() == Shape{channels, kernel}, source_.path(), ": tensor '", name, ".weight' (", w.shape(),
          ") is not [", channels, ", ", kernel, "].");
  const std::string state = str("conv.", i);
  Values operands = {x, w, recurrent_state(state, {kernel - 1, channels})};
  if (cache_.batch > 1) operands.push_back(ops::cast(ops::reduce_sum(in_use(), {.axes = {1}}), {.to = DType::I32}));
  const Value y = ops::causal_conv(operands);
  updated(state, y.result(1));
  return has(name + ".bias") ? y + weight(name + ".bias") : y;
}

Value DecoderBuilder::feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation) {
  return linear(ops::activate(linear(x, prefix + "ffn_up"), activation), prefix + "ffn_down");
}

Value DecoderBuilder::gated_feed_forward(const Value& x, const std::string& prefix, ops::ActivationKind activation) {
  const Value gate = ops::activate(linear(x, prefix + "ffn_gate"), activation);
  return linear(gate * linear(x, prefix + "ffn_up"), prefix + "ffn_down");
}

}  // namespace rlx::models
