// layer_norm and rms_norm where a model spells them with means, square roots and quotients. The quotient becomes a norm
// without weights; products with weights and sums with biases that follow go into it.
#include <algorithm>
#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/norm.h"
#include "rlx/ops/reduce.h"
#include "rlx/ops/reshape.h"

namespace rlx::passes {

namespace {

// The first of the reduced axes when they are the last ones of x and stay as ones.
std::optional<int64_t> mean_axis(const Rewriter& rw, const Node& node) {
  if (node.op != &ops::reduce_mean) return std::nullopt;
  const auto& attrs = node.attrs.as<ops::ReduceAttrs>();
  const int64_t rank = rw.graph().type(node.inputs[0]).rank();
  std::vector<int64_t> axes;
  for (const int64_t a : attrs.axes) axes.push_back(normalize_axis(a, rank));
  std::sort(axes.begin(), axes.end());
  if (!attrs.keep_dim || axes.empty() || axes.back() != rank - 1 ||
      axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size()))
    return std::nullopt;
  return axes.front();
}

// The value whose square this is.
std::optional<ValueId> square_of(const Rewriter& rw, ValueId id) {
  const Node& node = rw.producer(id);
  if (node.op == &ops::mul && node.inputs[0] == node.inputs[1]) return node.inputs[0];
  if (node.op == &ops::pow && scalar_of(rw, node.inputs[1]) == 2.0) return node.inputs[0];
  return std::nullopt;
}

struct Spread {  // sqrt(mean(x^2) + eps), or one over it
  ValueId x = 0;
  int64_t axis = 0;
  float eps = 0;
};

std::optional<Spread> spread_of(const Rewriter& rw, ValueId variance) {
  const Node& sum = rw.producer(variance);
  if (sum.op != &ops::add) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> eps = scalar_of(rw, sum.inputs[1 - i]);
    const Node& mean = rw.producer(sum.inputs[i]);
    const std::optional<int64_t> axis = mean_axis(rw, mean);
    if (!eps || *eps < 0 || !axis) continue;
    if (const auto x = square_of(rw, mean.inputs[0])) return Spread{*x, *axis, static_cast<float>(*eps)};
  }
  return std::nullopt;
}

// d / sqrt(mean(d^2) + eps), with a quotient or with a product with the reciprocal.
std::optional<Spread> normalized(const Rewriter& rw, const Node& node) {
  const auto root_argument = [&](ValueId id, const OpDef& op) -> std::optional<ValueId> {
    const Node& root = rw.producer(id);
    return root.op == &op ? std::optional(root.inputs[0]) : std::nullopt;
  };
  const auto check = [&](ValueId d, std::optional<ValueId> variance) -> std::optional<Spread> {
    if (!variance) return std::nullopt;
    const auto spread = spread_of(rw, *variance);
    return spread && spread->x == d ? spread : std::nullopt;
  };
  if (node.op == &ops::div) return check(node.inputs[0], root_argument(node.inputs[1], ops::sqrt));
  if (node.op != &ops::mul) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId d = node.inputs[i], scale = node.inputs[1 - i];
    if (const auto found = check(d, root_argument(scale, ops::rsqrt))) return found;
    const Node& quotient = rw.producer(scale);  // 1 / sqrt(…)
    if (quotient.op == &ops::div && scalar_of(rw, quotient.inputs[0]) == 1.0)
      if (const auto found = check(d, root_argument(quotient.inputs[1], ops::sqrt))) return found;
  }
  return std::nullopt;
}

TensorType weight_type(const TensorType& x, int64_t axis) {
  return {Shape(std::vector<Dim>(x.shape.begin() + axis, x.shape.end())), x.dtype};
}

Value filled(Rewriter& rw, const TensorType& x, int64_t axis, double value) {
  std::vector<int64_t> sizes;
  for (int64_t i = axis; i < x.rank(); ++i) sizes.push_back(x.dim(i).value());
  const std::vector<double> values(static_cast<size_t>(product(sizes)), value);
  return rw.out().constant(Tensor::from_doubles(x.dtype, sizes, values));
}

bool is_filled(const Graph& graph, ValueId id, double value) {
  const Node& node = graph.node_of(id);
  if (node.op != &ops::constant) return false;
  const Tensor& t = node.attrs.as<ops::ConstantAttrs>().value;
  for (int64_t i = 0; i < t.num_elements(); ++i)
    if (t.at(i) != value) return false;
  return true;
}

// The operand as a weight of a norm over the axes from `axis` on: of that shape, ones in front of it dropped.
bool is_weight(const TensorType& weight, const TensorType& x, int64_t axis) {
  const int64_t extra = weight.rank() - (x.rank() - axis);
  if (extra < 0 || weight.dtype != x.dtype) return false;
  for (int64_t i = 0; i < weight.rank(); ++i)
    if (i < extra ? !weight.dim(i).is(1) : weight.dim(i) != x.dim(axis + i - extra)) return false;
  return true;
}

Value as_weight(Rewriter& rw, ValueId id, const TensorType& x, int64_t axis) {
  const Value w = rw.in(id);
  if (w.type().rank() == x.rank() - axis) return w;
  std::vector<Dim> shape;
  for (int64_t i = axis; i < x.rank(); ++i) shape.push_back(x.dim(i));
  return ops::reshape(w, {.new_shape = shape});
}

// A norm that this pass made, times a weight or plus a bias.
std::optional<Values> absorb(Rewriter& rw, const Node& node) {
  if (node.op != &ops::mul && node.op != &ops::add) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId from = node.inputs[i], weight = node.inputs[1 - i];
    if (!rw.uses().sole_use(from, node) || !rw.can_have(weight)) continue;
    const Node norm = rw.producer_now(from);  // a copy: building moves nodes
    const TensorType& x = rw.graph().type(from);
    if (node.results[0].type != x) continue;
    const Graph& out = rw.out();
    if (norm.op == &ops::layer_norm) {
      const auto& attrs = norm.attrs.as<ops::LayerNormAttrs>();
      const int64_t axis = normalize_axis(attrs.axis, x.rank());
      if (!is_weight(rw.graph().type(weight), x, axis) || !is_filled(out, norm.inputs[2], 0)) continue;
      if (node.op == &ops::mul && !is_filled(out, norm.inputs[1], 1)) continue;
      const Value w = as_weight(rw, weight, x, axis);
      const Value source = rw.out().value(norm.inputs[0]);
      const Value other = rw.out().value(norm.inputs[node.op == &ops::mul ? 2 : 1]);
      return Values{node.op == &ops::mul ? ops::layer_norm(source, w, other, attrs)
                                         : ops::layer_norm(source, other, w, attrs)};
    }
    if (norm.op == &ops::rms_norm && node.op == &ops::mul && norm.inputs.size() == 2) {
      const auto& attrs = norm.attrs.as<ops::RmsNormAttrs>();
      const int64_t axis = normalize_axis(attrs.axis, x.rank());
      if (!is_weight(rw.graph().type(weight), x, axis) || !is_filled(out, norm.inputs[1], 1)) continue;
      const Value w = as_weight(rw, weight, x, axis);
      return Values{ops::rms_norm(rw.out().value(norm.inputs[0]), w, attrs)};
    }
  }
  return std::nullopt;
}

}  // namespace

void recognize_norms(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (is_unused(rw, node) || node.results.size() != 1 || !is_float(node.results[0].type.dtype)) return std::nullopt;
    if (auto values = absorb(rw, node)) return values;
    const std::optional<Spread> found = normalized(rw, node);
    if (!found) return std::nullopt;
    const TensorType& type = rw.graph().type(found->x);
    if (type != node.results[0].type) return std::nullopt;
    for (int64_t i = found->axis; i < type.rank(); ++i)
      if (!type.dim(i).is_static()) {
        rw.miss(node, "SymbolicSize", "The normalised axes have sizes that are not known.");
        return std::nullopt;
      }
    // Of x - mean(x) it is a layer_norm of x.
    const Node& difference = rw.producer(found->x);
    if (difference.op == &ops::sub) {
      const Node& mean = rw.producer(difference.inputs[1]);
      if (mean_axis(rw, mean) == found->axis && mean.inputs[0] == difference.inputs[0] &&
          rw.graph().type(difference.inputs[0]) == type) {
        const ops::LayerNormAttrs attrs{.axis = found->axis, .eps = found->eps};
        const TensorType weight = weight_type(type, found->axis);
        if (!rw.claims(ops::layer_norm, attrs, std::vector<TensorType>{type, weight, weight})) return std::nullopt;
        const Value x = rw.in(difference.inputs[0]);
        const Value ones = filled(rw, type, found->axis, 1);
        const Value zeros = filled(rw, type, found->axis, 0);
        return Values{ops::layer_norm(x, ones, zeros, attrs)};
      }
    }
    const ops::RmsNormAttrs attrs{.axis = found->axis, .eps = found->eps};
    const TensorType weight = weight_type(type, found->axis);
    if (!rw.claims(ops::rms_norm, attrs, std::vector<TensorType>{type, weight})) return std::nullopt;
    const Value x = rw.in(found->x);
    const Value ones = filled(rw, type, found->axis, 1);
    return Values{ops::rms_norm(x, ones, attrs)};
  });
}

}  // namespace rlx::passes
