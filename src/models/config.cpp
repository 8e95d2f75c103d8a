#include "models/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/convert.h"
#include "rlx/error.h"

namespace rlx::models {

namespace {

// A value per layer: the file has a list, or one for all.
std::vector<int64_t> per_layer(const ModelSource& source, std::string_view key, int64_t layers, int64_t otherwise) {
  std::vector<int64_t> out = source.integers(key);
  if (out.empty()) out = {otherwise};
  if (out.size() == 1) out.assign(static_cast<size_t>(layers), out[0]);
  require(static_cast<int64_t>(out.size()) == layers, source.path(), ": '", key, "' has ", out.size(), " values for ",
          layers, " layers.");
  return out;
}

std::vector<float> read_factors(const ModelSource& source, const std::string& name) {
  const std::optional<Weight> factors = source.find(name);
  if (!factors) return {};
  require(!factors->scheme && factors->data.dtype() == DType::F32, source.path(), ": '", name, "' is not f32.");
  const auto values = factors->data.values<float>();
  for (const float v : values)
    require(std::isfinite(v) && v > 0, source.path(), ": '", name, "' has a factor (", v, ") that is not positive.");
  return {values.begin(), values.end()};
}

RopeConfig read_rope(const ModelSource& source, int64_t head_dim, int64_t context) {
  RopeConfig rope;
  rope.dims = source.integer("rope.dimension_count").value_or(head_dim);
  rope.base = source.number("rope.freq_base").value_or(10000);
  rope.style = source.pairs_are_adjacent() ? ops::RopeStyle::kGptj : ops::RopeStyle::kNeox;
  rope.scaling = source.text("rope.scaling.type").value_or("linear");
  rope.factor = source.number("rope.scaling.factor").value_or(source.number("rope.scale_linear").value_or(1));
  if (rope.factor == 0) rope.factor = 1;
  rope.original_context = source.integer("rope.scaling.original_context_length").value_or(context);
  rope.attention_factor = source.number("rope.scaling.attn_factor").value_or(1);
  rope.yarn_beta_fast = source.number("rope.scaling.yarn_beta_fast").value_or(32);
  rope.yarn_beta_slow = source.number("rope.scaling.yarn_beta_slow").value_or(1);
  rope.pair_factors = read_factors(source, "rope_freqs.weight");
  if (rope.pair_factors.empty()) {
    rope.pair_factors = read_factors(source, "rope_factors_short.weight");
    rope.long_factors = read_factors(source, "rope_factors_long.weight");
  }
  for (const auto* factors : {&rope.pair_factors, &rope.long_factors})
    require(factors->empty() || static_cast<int64_t>(factors->size()) == rope.dims / 2, source.path(), ": there are ",
            factors->size(), " rope factors for ", rope.dims / 2, " pairs.");
  require(rope.dims >= 0 && rope.dims <= head_dim && rope.dims % 2 == 0, source.path(), ": rope.dimension_count (",
          rope.dims, ") is not an even number up to the head's size (", head_dim, ").");
  require(rope.base > 0 && rope.factor > 0, source.path(), ": rope.freq_base (", rope.base,
          ") and rope.scaling.factor (", rope.factor, ") must be positive.");
  require(rope.original_context > 0, source.path(), ": rope.scaling.original_context_length (", rope.original_context,
          ") is not positive.");
  const bool known = rope.scaling == "none" || rope.scaling == "linear" || rope.scaling == "yarn" ||
                     rope.scaling == "longrope" || rope.scaling == "llama3";
  if (!known) fail(ErrorKind::kUnsupported, str(source.path(), ": rope scaling '", rope.scaling, "' is unknown."));
  return rope;
}

// The dimension (of `dims`) whose wave turns `turns` times over the original context.
double yarn_dimension(const RopeConfig& c, double turns) {
  return static_cast<double>(c.dims) *
         std::log(static_cast<double>(c.original_context) / (turns * 2 * std::numbers::pi)) / (2 * std::log(c.base));
}

}  // namespace

DecoderConfig read_decoder_config(const ModelSource& source) {
  DecoderConfig c;
  c.architecture = source.architecture();
  c.layers = source.require_integer("block_count");
  c.width = source.require_integer("embedding_length");
  const auto positive = [&](std::string_view key, int64_t value, int64_t limit) {
    require(value > 0 && value <= limit, source.path(), ": '", key, "' (", value, ") is not between 1 and ", limit,
            ".");
  };
  positive("block_count", c.layers, 10'000);
  positive("embedding_length", c.width, 1 << 20);
  c.context = source.integer("context_length").value_or(2048);
  positive("context_length", c.context, int64_t{1} << 30);
  c.heads = source.integer("attention.head_count").value_or(1);
  if (c.heads == 0) c.heads = 1;  // models without attention say so
  positive("attention.head_count", c.heads, 1 << 16);
  c.kv_heads = per_layer(source, "attention.head_count_kv", c.layers, c.heads);
  for (const int64_t n : c.kv_heads)
    require(n >= 0 && (n == 0 || c.heads % n == 0), source.path(), ": attention.head_count_kv (", n,
            ") does not divide attention.head_count (", c.heads, ").");
  c.ffn = per_layer(source, "feed_forward_length", c.layers, 4 * c.width);
  c.head_dim = source.integer("attention.key_length").value_or(c.width / c.heads);
  positive("attention.key_length", c.head_dim, 1 << 14);
  require(source.integer("attention.value_length").value_or(c.head_dim) == c.head_dim, source.path(),
          ": keys and values of different sizes are not supported.");
  c.norm_eps = static_cast<float>(source.number("attention.layer_norm_rms_epsilon")
                                      .value_or(source.number("attention.layer_norm_epsilon").value_or(1e-5)));
  require(std::isfinite(c.norm_eps) && c.norm_eps >= 0, source.path(), ": attention.layer_norm_rms_epsilon (",
          c.norm_eps, ") is negative.");
  const Weight embedding = source.require_weight("token_embd.weight");
  require(embedding.sizes.size() == 2 && embedding.sizes[1] == c.width, source.path(),
          ": 'token_embd.weight' is not [vocabulary, ", c.width, "].");
  c.rope = read_rope(source, c.head_dim, c.context);
  c.vocabulary = embedding.sizes[0];
  c.experts = source.integer("expert_count").value_or(0);
  c.experts_used = source.integer("expert_used_count").value_or(0);
  require(c.experts >= 0 && c.experts_used >= 0 && c.experts_used <= c.experts, source.path(), ": expert_used_count (",
          c.experts_used, ") exceeds expert_count (", c.experts, ").");
  require(c.experts == 0 || c.experts_used > 0, source.path(), ": expert_used_count is missing or 0.");
  if (const auto cap = source.number("attn_logit_softcapping"); cap && *cap != 0)
    c.attention_softcap = static_cast<float>(*cap);
  if (const auto cap = source.number("final_logit_softcapping"); cap && *cap != 0)
    c.final_softcap = static_cast<float>(*cap);
  if (const auto scale = source.number("attention.scale"); scale && *scale != 0)
    c.attention_scale = static_cast<float>(*scale);
  return c;
}

std::vector<bool> read_window_pattern(const ModelSource& source, int64_t layers, int64_t period) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const std::vector<int64_t> given = source.integers(kKey);
  std::vector<bool> out;
  if (given.size() == 1)
    period = given[0];
  else
    for (const int64_t v : given) out.push_back(v != 0);
  require(period >= 0, source.path(), ": '", kKey, "' (", period, ") is negative.");
  if (out.empty())
    for (int64_t i = 0; i < layers; ++i) out.push_back(period == 0 || i % period < period - 1);
  require(static_cast<int64_t>(out.size()) == layers, source.path(), ": '", kKey, "' has ", out.size(), " values for ",
          layers, " layers.");
  return out;
}

RecurrentConfig read_recurrent_config(const ModelSource& source) {
  const auto positive = [&](std::string_view key, int64_t limit) {
    const int64_t value = source.require_integer(key);
    require(value > 0 && value <= limit, source.path(), ": '", key, "' (", value, ") is not between 1 and ", limit,
            ".");
    return value;
  };
  return {.kernel = positive("ssm.conv_kernel", 64),
          .inner = positive("ssm.inner_size", 1 << 20),
          .state = positive("ssm.state_size", 1 << 14),
          .rank = positive("ssm.time_step_rank", 1 << 20),
          .groups = source.integer("ssm.group_count").value_or(0)};
}

RopeTables rope_tables(const RopeConfig& c, int64_t head_dim, int64_t rows) {
  const int64_t half = head_dim / 2, pairs = c.dims / 2;
  std::vector<double> frequency(static_cast<size_t>(pairs));
  double magnitude = c.attention_factor;
  for (size_t i = 0; i < frequency.size(); ++i) {
    double f = std::pow(c.base, -2.0 * static_cast<double>(i) / static_cast<double>(c.dims));
    if (!c.pair_factors.empty()) f /= static_cast<double>(c.pair_factors[i]);
    if (c.scaling == "linear") f /= c.factor;
    if (c.scaling == "yarn") {
      // Waves that turn often over the original context stay, slow ones are stretched, those between are mixed.
      const double low = std::max(0.0, std::floor(yarn_dimension(c, c.yarn_beta_fast)));
      const double high = std::min(static_cast<double>(c.dims - 1), std::ceil(yarn_dimension(c, c.yarn_beta_slow)));
      const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(high - low, 0.001), 0.0, 1.0);
      f = f / c.factor * ramp + f * (1 - ramp);
    }
    frequency[i] = f;
  }
  if (c.scaling == "yarn" && c.factor > 1) magnitude *= 1 + 0.1 * std::log(c.factor);
  RopeTables out{Tensor(DType::F32, {rows, half}), Tensor(DType::F32, {rows, half})};
  const std::span<float> cos = out.cos.mutable_values<float>(), sin = out.sin.mutable_values<float>();
  for (int64_t p = 0; p < rows; ++p)
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(p) * frequency[static_cast<size_t>(i)];
      cos[static_cast<size_t>(p * half + i)] = static_cast<float>(std::cos(angle) * magnitude);
      sin[static_cast<size_t>(p * half + i)] = static_cast<float>(std::sin(angle) * magnitude);
    }
  return out;
}

}  // namespace rlx::models
