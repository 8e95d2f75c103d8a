// Blocks that models share, as the canonical patterns that fusion looks for (spec 10, 3.2).
#pragma once

#include <optional>
#include <utility>

#include "rlx/ops/activation.h"

namespace rlx::blocks {

// x·w, plus the bias when there is one.
Value linear_bias(const Value& x, const Value& w, const std::optional<Value>& bias = std::nullopt);

// act(x·w + bias), as separate ops.
Value linear_bias_act(const Value& x, const Value& w, const std::optional<Value>& bias, ops::ActivationKind activation);

// act(x·w + bias) as one fused_matmul_bias_act.
Value linear_fused(const Value& x, const Value& w, const Value& bias,
                   ops::ActivationKind activation = ops::ActivationKind::kNone);

// x·a and x·b.
std::pair<Value, Value> shared_matmul_pair(const Value& x, const Value& a, const Value& b);

// (x·up ∘ silu(x·gate))·down.
Value swiglu_ffn(const Value& x, const Value& up_w, const Value& gate_w, const Value& down_w);

// The same with up and gate in one weight, [up, gate] along axis 1: one matmul and fused_swiglu.
Value fused_swiglu_ffn(const Value& x, const Value& up_gate_w, const Value& down_w);

}  // namespace rlx::blocks
