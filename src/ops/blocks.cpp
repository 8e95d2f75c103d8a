#include "rlx/blocks.h"

#include "rlx/ops/binary.h"
#include "rlx/ops/fused_matmul.h"
#include "rlx/ops/fused_swiglu.h"
#include "rlx/ops/matmul.h"

namespace rlx::blocks {

Value linear_bias(const Value& x, const Value& w, const std::optional<Value>& bias) {
  const Value product = ops::matmul(x, w);
  return bias ? product + *bias : product;
}

Value linear_bias_act(const Value& x, const Value& w, const std::optional<Value>& bias,
                      ops::ActivationKind activation) {
  return ops::activate(linear_bias(x, w, bias), activation);
}

Value linear_fused(const Value& x, const Value& w, const Value& bias, ops::ActivationKind activation) {
  return ops::fused_matmul_bias_act(x, w, bias, {.activation = activation});
}

std::pair<Value, Value> shared_matmul_pair(const Value& x, const Value& a, const Value& b) {
  const Value first = ops::matmul(x, a);  // in this order: a pair's elements may be evaluated in any
  return {first, ops::matmul(x, b)};
}

Value swiglu_ffn(const Value& x, const Value& up_w, const Value& gate_w, const Value& down_w) {
  const auto [up, gate] = shared_matmul_pair(x, up_w, gate_w);
  return ops::matmul(up * ops::silu(gate), down_w);
}

Value fused_swiglu_ffn(const Value& x, const Value& up_gate_w, const Value& down_w) {
  return ops::matmul(ops::fused_swiglu(ops::matmul(x, up_gate_w)), down_w);
}

}  // namespace rlx::blocks
