#include "passes/match.h"

#include <cmath>

#include <algorithm>

#include "rlx/ops/binary.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/fused_matmul.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/matmul.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"

namespace rlx::passes {

ops::ActivationKind activation_of(const OpDef& op) {
  using ops::ActivationKind;
  for (size_t i = 1; i < enum_names<ActivationKind>.size(); ++i)
    if (const auto kind = static_cast<ActivationKind>(i); &op == &ops::activation_op(kind)) return kind;
  return ActivationKind::kNone;
}

bool is_unused(Rewriter& rw, const Node& node) {
  return std::all_of(node.results.begin(), node.results.end(),
                     [&](const Result& r) { return rw.uses().edges(r.id) == 0; });
}

std::vector<TensorType> types_of(const Rewriter& rw, std::span<const ValueId> ids) {
  std::vector<TensorType> types;
  types.reserve(ids.size());
  for (const ValueId id : ids) types.push_back(rw.graph().type(id));
  return types;
}

std::optional<Linear> as_linear(const Rewriter& rw, const Node& node) {
  if (node.op == &ops::matmul) {
    if (rw.graph().type(node.inputs[1]).rank() != 2) return std::nullopt;
    return Linear{node.inputs[0], node.inputs[1], std::nullopt, ops::ActivationKind::kNone};
  }
  if (node.op != &ops::fused_matmul_bias_act) return std::nullopt;
  return Linear{node.inputs[0], node.inputs[1], node.inputs[2],
                node.attrs.as<ops::FusedMatmulBiasActAttrs>().activation};
}

Value reshaped(const Value& v, const std::vector<Dim>& shape) {
  if (v.shape() == Shape(shape)) return v;
  const Node& node = v.graph().node_of(v.id());
  if (node.op == &ops::reshape) return reshaped(v.graph().value(node.inputs[0]), shape);
  return ops::reshape(v, {.new_shape = shape});
}

std::optional<LastSlice> as_last_slice(const Node& node) {
  if (node.op != &ops::narrow) return std::nullopt;
  const auto& attrs = node.attrs.as<ops::NarrowAttrs>();
  const int64_t rank = node.results[0].type.rank();
  if (normalize_axis(attrs.axis, rank) != rank - 1 || !attrs.start.is_static() || !attrs.len.is_static())
    return std::nullopt;
  return LastSlice{attrs.start.value(), attrs.len.value()};
}

std::vector<GatedProduct> gated_products(const Rewriter& rw, const Node& node) {
  std::vector<GatedProduct> found;
  if (node.op != &ops::mul) return found;
  for (size_t side = 0; side < 2; ++side) {
    const ValueId up = node.inputs[1 - side], gate = node.inputs[side];
    const Node& producer = rw.producer(gate);
    if (producer.op == &ops::silu) {
      found.push_back({up, producer.inputs[0], &producer});
    } else if (const auto linear = as_linear(rw, producer);
               linear && linear->activation == ops::ActivationKind::kSilu) {
      found.push_back({up, gate, nullptr});
    }
  }
  return found;
}

std::optional<double> scalar_of(const Rewriter& rw, ValueId id) {
  const Node* node = &rw.producer(id);
  while (node->op == &ops::expand || node->op == &ops::reshape) node = &rw.producer(node->inputs[0]);
  if (node->op != &ops::constant) return std::nullopt;
  const Tensor& value = node->attrs.as<ops::ConstantAttrs>().value;
  if (value.num_elements() != 1 || is_complex(value.dtype())) return std::nullopt;
  return value.at(0);
}

std::optional<ValueId> other_operand(const Rewriter& rw, const Node& node, double number, double tolerance) {
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> c = scalar_of(rw, node.inputs[i]);
    if (c && std::abs(*c - number) <= tolerance * std::abs(number)) return node.inputs[1 - i];
  }
  return std::nullopt;
}

Scaled as_scaled(Rewriter& rw, ValueId id) {
  Scaled s{id, 1};
  for (;;) {
    const Node& node = rw.producer(s.x);
    // Not a step that broadcasts x: the product has another shape then.
    const auto step = [&](size_t i, double factor) {
      if (rw.graph().type(node.inputs[i]) != rw.graph().type(s.x)) return false;
      s = {node.inputs[i], s.factor * factor};
      return true;
    };
    if (node.op == &ops::mul) {
      const auto left = scalar_of(rw, node.inputs[0]), right = scalar_of(rw, node.inputs[1]);
      if (right ? step(0, *right) : left ? step(1, *left) : false) continue;
    } else if (node.op == &ops::div) {
      const auto right = scalar_of(rw, node.inputs[1]);
      if (right && *right != 0 && step(0, 1 / *right)) continue;
    }
    return s;
  }
}

}  // namespace rlx::passes
