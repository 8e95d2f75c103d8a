// Qwen 3 Next: three layers of four are gated delta nets, the fourth is attention with a gated output; every layer has
// experts, one of them for all tokens.
#include "models/architectures.h"
#include "models/experts.h"
#include "rlx/ops.h"

namespace rlx::models {

void configure_qwen3next(const ModelSource& source, DecoderConfig& config) {
  config.rope.style = ops::RopeStyle::kNeox;
  const int64_t drafts = source.integer("nextn_predict_layers").value_or(0);  // layers that guess ahead
  require(drafts >= 0 && drafts < config.layers, source.path(), ": nextn_predict_layers (", drafts,
          ") is not below block_count (", config.layers, ").");
  config.layers -= drafts;
  RecurrentConfig& r = config.recurrent = read_recurrent_config(source);
  require(r.groups > 0 && r.rank % r.groups == 0 && r.inner == r.rank * r.state, source.path(),
          ": the sizes of the delta nets (ssm.group_count ", r.groups, ", ssm.time_step_rank ", r.rank,
          ", ssm.state_size ", r.state, ", ssm.inner_size ", r.inner, ") do not fit each other.");
  const std::vector<int64_t> listed = source.integers("attention.recurrent_layers");
  const int64_t interval = source.integer("full_attention_interval").value_or(4);
  require(interval > 0, source.path(), ": full_attention_interval (", interval, ") is not positive.");
  require(listed.empty() || static_cast<int64_t>(listed.size()) >= config.layers, source.path(),
          ": attention.recurrent_layers has ", listed.size(), " values for ", config.layers, " layers.");
  for (int64_t i = 0; i < config.layers; ++i)
    config.is_recurrent.push_back(listed.empty() ? (i + 1) % interval != 0 : listed[static_cast<size_t>(i)] != 0);
}

namespace {

// The query's projection has a gate of the same size behind each head.
Value gated_attention(DecoderBuilder& b, const Value& h, int64_t i) {
  const DecoderConfig& c = b.config();
  const std::string layer = str("blk.", i, ".");
  const Shape rows = h.shape();
  const Value both =
      ops::reshape(b.linear(h, layer + "attn_q"), {.new_shape = {rows[0], rows[1], c.heads, 2 * c.head_dim}});
  const auto flat = [&](const Value& x) {
    return ops::reshape(x, {.new_shape = {rows[0], rows[1], c.heads * c.head_dim}});
  };
  const Value gate = ops::sigmoid(flat(b.columns(both, c.head_dim, c.head_dim)));
  const Value q = b.head_norm(flat(b.columns(both, 0, c.head_dim)), layer + "attn_q_norm");
  const Value k = b.head_norm(b.linear(h, layer + "attn_k"), layer + "attn_k_norm");
  const Value v = b.linear(h, layer + "attn_v");
  const Value seen = b.attention(i, {b.rope(q, c.rope), b.rope(k, c.rope), v});
  return b.linear(seen * gate, layer + "attn_output");
}

Value delta_net(DecoderBuilder& b, const Value& h, int64_t i) {
  const RecurrentConfig& r = b.config().recurrent;
  const std::string layer = str("blk.", i, ".");
  const Shape rows = h.shape();
  const int64_t repeats = r.rank / r.groups, keys = r.groups * r.state;
  const auto shaped = [&](const Value& x, std::vector<Dim> tail) {
    tail.insert(tail.begin(), {rows[0], rows[1]});
    return ops::reshape(x, {.new_shape = tail});
  };
  // Per head of keys: beta of its heads of values, then alpha.
  const Value rates = shaped(b.linear(h, layer + "ssm_ba"), {r.groups, 2 * repeats});
  const Value beta = ops::sigmoid(shaped(b.columns(rates, 0, repeats), {r.rank}));
  const Value alpha = shaped(b.columns(rates, repeats, repeats), {r.rank}) + b.weight(layer + "ssm_dt.bias");
  const Value g = softplus(alpha) * b.weight(layer + "ssm_a");

  const Value mixed = ops::silu(b.causal_conv(i, b.linear(h, layer + "attn_qkv"), layer + "ssm_conv1d"));
  const auto head = [&](int64_t start) {  // of queries or keys: of length 1, repeated for the heads of values
    const Value x = shaped(b.columns(mixed, start, keys), {r.groups, 1, r.state});
    const Value squares = ops::reduce_sum(x * x, {.axes = {4}, .keep_dim = true});
    const Value unit = x * ops::rsqrt(squares + b.scalar(b.config().norm_eps));
    return shaped(ops::expand(unit, {.target_shape = {rows[0], rows[1], r.groups, repeats, r.state}}),
                  {r.rank, r.state});
  };
  const Value q = head(0), k = head(keys);
  const Value v = shaped(b.columns(mixed, 2 * keys, r.inner), {r.rank, r.state});
  const std::string state = str("delta.", i);
  // Rows with neither decay nor gain leave the state as it is.
  const Value decay = b.zero_unused(g), gain = b.zero_unused(beta);
  const Values operands = {q, k, v, decay, gain, b.recurrent_state(state, {r.rank, r.state, r.state})};
  const Value y = ops::gated_delta_net(operands, {.state_size = r.state, .carry_state = true});
  b.updated(state, y.result(1));
  const Value z = shaped(b.linear(h, layer + "attn_gate"), {r.rank, r.state});
  const Value gated = b.rms_norm(y, layer + "ssm_norm") * ops::silu(z);
  return b.linear(shaped(gated, {r.inner}), layer + "ssm_out");
}

}  // namespace

Value build_qwen3next(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value h = b.rms_norm(x, layer + "attn_norm");
    x = x + (c.is_recurrent[static_cast<size_t>(i)] ? delta_net(b, h, i) : gated_attention(b, h, i));
    x = x + mixture_of_experts(b, b.rms_norm(x, layer + "post_attention_norm"), layer);
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
