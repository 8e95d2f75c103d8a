// Questions that several fusions ask of a node.
#pragma once

#include <optional>
#include <vector>

#include "passes/rewriter.h"
#include "rlx/ops/activation.h"

namespace rlx::passes {

// kNone: the op is no activation.
ops::ActivationKind activation_of(const OpDef& op);

inline const Dim& last_dim(const TensorType& type) { return type.dim(type.rank() - 1); }

// Nobody takes any of its results. A fusion leaves such a node alone: with it would go what it reads, and running the
// pass again would find other readers than before.
bool is_unused(Rewriter& rw, const Node& node);

std::vector<TensorType> types_of(const Rewriter& rw, std::span<const ValueId> ids);

// The one number that a constant holds: one element, or an expand of one.
std::optional<double> scalar_of(const Rewriter& rw, ValueId id);

// The other operand of a commutative node of two when one is a given number, within a relative tolerance.
std::optional<ValueId> other_operand(const Rewriter& rw, const Node& node, double number, double tolerance = 1e-6);

// What a value is times a number: x * c, c * x and x / c are followed down to x, as far as nobody else reads them.
struct Scaled {
  ValueId x = 0;
  double factor = 1;
};
Scaled as_scaled(Rewriter& rw, ValueId id);

// Products of a value with a matrix: a matmul whose right side is one matrix, or the same with its epilogue.
struct Linear {
  ValueId x = 0, w = 0;
  std::optional<ValueId> bias;
  ops::ActivationKind activation = ops::ActivationKind::kNone;
};
std::optional<Linear> as_linear(const Rewriter& rw, const Node& node);

// The value in another shape; no reshape of a reshape, which a second run of the passes would find.
Value reshaped(const Value& v, const std::vector<Dim>& shape);

// A narrow of the last axis by numbers, not symbols.
struct LastSlice {
  int64_t start = 0, len = 0;
};
std::optional<LastSlice> as_last_slice(const Node& node);

// up * silu(gate), either way round, as old values; nullopt when the node is something else. `silu` may be an
// activation of its own or the epilogue of a linear node, whose result it is then.
struct GatedProduct {
  ValueId up = 0, gate = 0;    // gate before the silu where that is a node of its own
  const Node* silu = nullptr;  // null: the gate's own epilogue
};
std::vector<GatedProduct> gated_products(const Rewriter& rw, const Node& node);

}  // namespace rlx::passes
