#include "models/experts.h"

#include "rlx/ops.h"

namespace rlx::models {

Value mixture_of_experts(DecoderBuilder& b, const Value& x, const std::string& prefix) {
  const int64_t used = b.config().experts_used, width = b.config().width;
  const Value rows = ops::reshape(x, {.new_shape = {-1, width}});
  for (const char* name : {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps", "ffn_down_exps"}) {
    const std::optional<Weight> w = b.source().find(prefix + name + ".weight");
    require(!w || (!w->sizes.empty() && w->sizes[0] == b.config().experts), b.source().path(), ": tensor '", prefix,
            name, ".weight' is not that of ", b.config().experts, " experts.");
  }
  const Value probabilities = ops::softmax(b.linear(rows, prefix + "ffn_gate_inp"));
  const Value top = ops::topk(probabilities, {.k = used});
  Value weights = top;  // [rows, used]
  if (b.source().boolean("expert_weights_norm").value_or(true)) {
    const Value sum = ops::reduce_sum(top, {.axes = {1}, .keep_dim = true});
    weights = top / ops::max(sum, b.scalar(6.103515625e-5f));  // all of them may be tiny
  }
  if (const auto factor = b.source().number("expert_weights_scale"); factor && *factor != 0 && *factor != 1)
    weights = b.scale(weights, static_cast<float>(*factor));

  // A row of x per expert that it goes to.
  const Value choice = ops::reshape(top.result(1), {.new_shape = {-1}});
  const Value apart = ops::reshape(rows, {.new_shape = {-1, 1, width}});
  const Value copies =
      ops::reshape(ops::expand(apart, {.target_shape = {-1, used, width}}), {.new_shape = {-1, width}});
  const auto gated = [&]() {
    if (b.has(prefix + "ffn_gate_up_exps.weight")) {
      const Value both = b.expert_linear(copies, prefix + "ffn_gate_up_exps", choice);
      const int64_t half = both.shape()[1].value() / 2;
      return ops::silu(b.columns(both, 0, half)) * b.columns(both, half, half);
    }
    const Value gate = ops::silu(b.expert_linear(copies, prefix + "ffn_gate_exps", choice));
    return gate * b.expert_linear(copies, prefix + "ffn_up_exps", choice);
  };
  const Value down = b.expert_linear(gated(), prefix + "ffn_down_exps", choice);
  const Value parts =
      ops::reshape(down, {.new_shape = {-1, used, width}}) * ops::reshape(weights, {.new_shape = {-1, used, 1}});
  const Value y = ops::reshape(ops::reduce_sum(parts, {.axes = {1}}), {.new_shape = x.shape().dims()});
  if (!b.has(prefix + "ffn_up_shexp.weight")) return y;

  const Value gate = ops::silu(b.linear(x, prefix + "ffn_gate_shexp"));
  const Value shared = b.linear(gate * b.linear(x, prefix + "ffn_up_shexp"), prefix + "ffn_down_shexp");
  if (!b.has(prefix + "ffn_gate_inp_shexp.weight")) return y + shared;
  // A weight of one column: its file has it as a vector.
  const Value likely =
      ops::reduce_sum(x * b.weight(prefix + "ffn_gate_inp_shexp.weight"), {.axes = {2}, .keep_dim = true});
  return y + shared * ops::sigmoid(likely);
}

}  // namespace rlx::models
