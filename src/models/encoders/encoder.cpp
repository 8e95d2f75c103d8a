#include "models/encoders/encoder.h"

#include <cmath>

#include "models/architectures.h"
#include "rlx/ops.h"

namespace rlx::models {

namespace {

constexpr int64_t kMostAngles = 1 << 22;  // of 65,536 tokens for heads of 64

constexpr EncoderArchitecture kEncoders[] = {
    {"bert", build_bert},
    {"modern-bert", build_modern_bert},
    {"nomic-bert", build_bert},
};

ops::ActivationKind activation_of(const ModelSource& source, std::string_view otherwise) {
  const std::string name = source.text("hidden_activation").value_or(std::string(otherwise));
  if (name == "gelu") return ops::ActivationKind::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return ops::ActivationKind::kGeluApprox;
  if (name == "relu") return ops::ActivationKind::kRelu;
  if (name == "silu" || name == "swiglu") return ops::ActivationKind::kSilu;
  fail(ErrorKind::kUnsupported, str(source.path(), ": the activation '", name, "' is not one that encoders have."));
}

Pooling pooling_of(const ModelSource& source) {
  switch (source.integer("pooling_type").value_or(1)) {
    case 0:  // none: rows are what the model was made for; a vector of them is their mean
    case 1: return Pooling::kMean;
    case 2: return Pooling::kCls;
    case 3: return Pooling::kLast;
    default: break;
  }
  fail(ErrorKind::kUnsupported, str(source.path(), ": pooling_type (", *source.integer("pooling_type"),
                                    ") is not one that rlx has: mean, cls and last."));
}

}  // namespace

bool is_encoder(const ModelSource& source) {
  for (const EncoderArchitecture& e : kEncoders)
    if (e.name == source.architecture()) return true;
  return false;
}

const EncoderArchitecture& find_encoder(const ModelSource& source) {
  std::string known;
  for (const EncoderArchitecture& e : kEncoders) {
    if (e.name == source.architecture()) return e;
    known += str(known.empty() ? "" : ", ", e.name);
  }
  for (const Architecture& a : architectures())
    if (a.name == source.architecture())
      fail(ErrorKind::kUnsupported,
           str(source.path(), ": the architecture '", a.name,
               "' is a decoder's: it makes text (rlx generate), no vectors. Encoders are: ", known, "."));
  fail(ErrorKind::kUnsupported, str(source.path(), ": the architecture '", source.architecture(),
                                    "' is not an encoder that rlx has: ", known, "."));
}

EncoderConfig read_encoder_config(const ModelSource& source) {
  EncoderConfig c;
  c.architecture = find_encoder(source).name;  // another one's file lacks what is asked for below
  const auto positive = [&](std::string_view key, int64_t limit) {
    const int64_t value = source.require_integer(key);
    require(value > 0 && value <= limit, source.path(), ": '", key, "' (", value, ") is not between 1 and ", limit,
            ".");
    return value;
  };
  c.layers = positive("block_count", 10'000);
  c.width = positive("embedding_length", 1 << 20);
  c.heads = positive("attention.head_count", 1 << 16);
  c.context = positive("context_length", int64_t{1} << 24);
  require(c.width % c.heads == 0, source.path(), ": embedding_length (", c.width,
          ") is not a multiple of attention.head_count (", c.heads, ").");
  c.head_dim = c.width / c.heads;
  c.norm_eps = static_cast<float>(source.number("attention.layer_norm_epsilon").value_or(1e-12));
  require(c.norm_eps >= 0 && std::isfinite(c.norm_eps), source.path(), ": the norms' epsilon (", c.norm_eps,
          ") is not a number from 0.");
  const Weight embedding = source.require_weight("token_embd.weight");
  require(embedding.sizes.size() == 2 && embedding.sizes[1] == c.width, source.path(),
          ": 'token_embd.weight' is not [vocabulary, ", c.width, "].");
  c.vocabulary = embedding.sizes[0];
  c.pooling = pooling_of(source);
  c.normalize = source.boolean("embedding.normalize").value_or(false);
  c.activation = activation_of(source, c.architecture == "nomic-bert" ? "silu" : "gelu");
  if (const auto positions = source.find("position_embd.weight")) {
    require(positions->sizes.size() == 2 && positions->sizes[1] == c.width, source.path(),
            ": 'position_embd.weight' is not [positions, ", c.width, "].");
    c.context = std::min(c.context, positions->sizes[0]);
  } else {
    c.rope.dims = source.integer("rope.dimension_count").value_or(c.head_dim);
    c.rope.base = source.number("rope.freq_base").value_or(10000);
    require(c.rope.dims > 0 && c.rope.dims <= c.head_dim && c.rope.dims % 2 == 0 && c.rope.base > 0, source.path(),
            ": rope.dimension_count (", c.rope.dims, ") is not an even number up to ", c.head_dim,
            ", or rope.freq_base (", c.rope.base, ") not positive.");
  }
  if (const auto length = source.integer("embedding.max_length")) c.context = std::min(c.context, *length);
  // A row of angles per position: a file of a kilobyte may claim more of them than there is memory.
  if (c.rope.dims > 0) c.context = std::min(c.context, std::max<int64_t>(kMostAngles / c.head_dim, 1));
  require(c.context > 0, source.path(), ": the model takes ", c.context,
          " tokens (by context_length, embedding.max_length or the rows of 'position_embd.weight').");
  if (c.architecture != "modern-bert") return c;

  c.window = source.integer("attention.sliding_window").value_or(128) / 2;
  c.window_rope = c.rope;
  c.window_rope.base = source.number("rope.freq_base_swa").value_or(10000);
  require(c.window >= 0 && c.window_rope.base > 0, source.path(),
          ": attention.sliding_window or rope.freq_base_swa is negative.");
  const std::vector<int64_t> pattern = source.integers("attention.sliding_window_pattern");
  const int64_t period = pattern.empty() ? 3 : pattern[0];
  require(pattern.size() <= 1 || static_cast<int64_t>(pattern.size()) == c.layers, source.path(),
          ": attention.sliding_window_pattern has ", pattern.size(), " values for ", c.layers, " layers.");
  require(pattern.size() > 1 || period > 0, source.path(), ": attention.sliding_window_pattern is not positive.");
  for (int64_t i = 0; i < c.layers; ++i)
    c.windowed.push_back(pattern.size() > 1 ? pattern[static_cast<size_t>(i)] != 0 : i % period != 0);
  return c;
}

EncoderBuilder::EncoderBuilder(const ModelSource& source, EncoderConfig config)
    : ModelParts(source, config.architecture, config.norm_eps),
      config_(std::move(config)),
      batch_(Dim::symbol(symbols::kBatch)),
      rows_(Dim::symbol(symbols::kSeq)),
      tokens_(graph_.input("tokens", {{batch_, rows_}, DType::I32})),
      positions_(graph_.input("positions", {{rows_}, DType::I32})),
      lengths_(graph_.input("lengths", {{batch_}, DType::I32})) {}

const Value& EncoderBuilder::types() {
  if (!types_) types_ = graph_.input("types", {{batch_, rows_}, DType::I32});
  return *types_;
}

Value EncoderBuilder::rotated(const Value& x, bool windowed) {
  const RopeConfig& rope = windowed ? config_.window_rope : config_.rope;
  if (rope.dims == 0) return x;
  std::optional<Tables>& tables = tables_[windowed ? 1 : 0];
  if (!tables) {
    const RopeTables made = rope_tables(rope, config_.head_dim, config_.context);
    tables = Tables{graph_.constant(made.cos), graph_.constant(made.sin)};
  }
  return ops::rope(x, tables->cos, tables->sin, positions_,
                   {.head_dim = config_.head_dim, .n_rot = rope.dims, .layout = ops::AttentionLayout::kBsf});
}

// [1, rows, rows]: 1 where a key is near enough.
const Value& EncoderBuilder::window_mask() {
  if (!mask_) {
    const Value at = ops::cast(positions_, {.to = DType::F32});
    const Value distance =
        ops::abs(ops::reshape(at, {.new_shape = {1, -1, 1}}) - ops::reshape(at, {.new_shape = {1, 1, -1}}));
    mask_ = ops::cast(ops::le(distance, scalar(static_cast<float>(config_.window))), {.to = DType::F32});
  }
  return *mask_;
}

Value EncoderBuilder::attention(const Value& h, int64_t i) {
  const std::string layer = str("blk.", i, ".");
  const bool windowed = !config_.windowed.empty() && config_.windowed[static_cast<size_t>(i)];
  const auto parts = [&]() -> std::array<Value, 3> {
    if (!has(layer + "attn_qkv.weight"))
      return {linear(h, layer + "attn_q"), linear(h, layer + "attn_k"), linear(h, layer + "attn_v")};
    const Value all = linear(h, layer + "attn_qkv");
    require(all.shape()[2].is(3 * config_.width), source_.path(), ": '", layer, "attn_qkv' has ", all.shape()[2],
            " rows, not ", 3 * config_.width, ".");
    return {columns(all, 0, config_.width), columns(all, config_.width, config_.width),
            columns(all, 2 * config_.width, config_.width)};
  };
  const auto [q, k, v] = parts();
  ops::AttentionAttrs attrs{
      .num_heads = config_.heads, .head_dim = config_.head_dim, .layout = ops::AttentionLayout::kBsf};
  // Without a mask of positions a length only cuts the keys off: queries behind it are padding.
  Values operands = {rotated(q, windowed), rotated(k, windowed), v};
  if (windowed) {
    attrs.mask_kind = ops::MaskKind::kCustom;
    operands.push_back(window_mask());
  }
  operands.push_back(lengths_);
  return linear(ops::attention(operands, attrs), layer + "attn_output");
}

Value EncoderBuilder::feed_forward(const Value& x, const std::string& layer, bool fused) {
  const Value up = linear(x, layer + "ffn_up");
  const auto wide = [&]() {
    if (fused) {
      const int64_t half = up.shape()[2].value() / 2;
      return ops::activate(columns(up, 0, half), config_.activation) * columns(up, half, half);
    }
    if (!has(layer + "ffn_gate.weight")) return ops::activate(up, config_.activation);
    return ops::activate(linear(x, layer + "ffn_gate"), config_.activation) * up;
  };
  return linear(wide(), layer + "ffn_down");
}

Value EncoderBuilder::pool(const Value& hidden, Pooling pooling) {
  if (pooling == Pooling::kNone) return hidden;
  if (pooling == Pooling::kCls)
    return ops::reshape(ops::narrow(hidden, {.axis = 1, .start = 0, .len = 1}), {.new_shape = {batch_, config_.width}});
  // A sum over rows, each with a weight of its own, of which those of padding are 0.
  const Value at = ops::reshape(positions_, {.new_shape = {1, 1, rows_}});
  const Value length = ops::reshape(lengths_, {.new_shape = {batch_, 1, 1}});
  const Value one = graph_.constant(Tensor::i32({}, {1}));
  const Value chosen = pooling == Pooling::kMean ? ops::lt(at, length) : ops::eq(at, length - one);
  const Value sum =
      ops::reshape(ops::matmul(ops::cast(chosen, {.to = DType::F32}), hidden), {.new_shape = {batch_, config_.width}});
  if (pooling == Pooling::kLast) return sum;
  return sum / ops::reshape(ops::cast(lengths_, {.to = DType::F32}), {.new_shape = {batch_, 1}});
}

Value EncoderBuilder::normalized(const Value& x) {
  const Value squares = ops::reduce_sum(x * x, {.axes = {1}, .keep_dim = true});
  return x / ops::max(ops::sqrt(squares), scalar(1e-12f));
}

}  // namespace rlx::models
