// Mamba: a short causal convolution and a selective scan per layer, no attention.
#include "models/architectures.h"
#include "rlx/ops.h"

namespace rlx::models {

void configure_mamba(const ModelSource& source, DecoderConfig& config) {
  config.recurrent = read_recurrent_config(source);
  config.is_recurrent.assign(static_cast<size_t>(config.layers), true);
}

Value build_mamba(DecoderBuilder& b) {
  const DecoderConfig& c = b.config();
  const RecurrentConfig& r = c.recurrent;
  Value x = b.embedding(b.tokens(), "token_embd.weight");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = str("blk.", i, ".");
    const Value both = b.linear(b.rms_norm(x, layer + "attn_norm"), layer + "ssm_in");
    const Value u = ops::silu(b.causal_conv(i, b.columns(both, 0, r.inner), layer + "ssm_conv1d"));
    const Value chosen = b.linear(u, layer + "ssm_x");
    Value step = b.columns(chosen, 0, r.rank);
    Value gain = b.columns(chosen, r.rank, r.state), readout = b.columns(chosen, r.rank + r.state, r.state);
    if (b.has(layer + "ssm_dt_norm.weight")) {  // Falcon Mamba
      step = b.rms_norm(step, layer + "ssm_dt_norm");
      gain = b.rms_norm(gain, layer + "ssm_b_norm");
      readout = b.rms_norm(readout, layer + "ssm_c_norm");
    }
    // A step of 0 leaves the state as it is.
    const Value delta = b.zero_unused(softplus(b.linear(step, layer + "ssm_dt")));
    const std::string state = str("scan.", i);
    const Values operands = {u,    delta,   b.weight(layer + "ssm_a"),
                             gain, readout, b.recurrent_state(state, {r.inner, r.state})};
    const Value y = ops::selective_scan(operands, {.state_size = r.state});
    b.updated(state, y.result(1));
    const Value gated = (y + u * b.weight(layer + "ssm_d")) * ops::silu(b.columns(both, r.inner, r.inner));
    x = x + b.linear(gated, layer + "ssm_out");
  }
  return b.rms_norm(x, "output_norm");
}

}  // namespace rlx::models
