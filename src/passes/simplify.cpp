// Algebra that never changes a bit: nodes that change nothing go, pairs that are one node become one (spec 20, 1.4.2).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/concat.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/leaves.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/resize.h"
#include "rlx/ops/resize_nearest_2x.h"
#include "rlx/ops/slice.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

// Is every element of the constant this number? -0.0 and 0.0 are different numbers here.
bool is_all(const Tensor& t, double number) {
  if (t.num_elements() == 0 || is_complex(t.dtype()) || t.dtype() == DType::Bool) return false;
  for (int64_t i = 0; i < t.num_elements(); ++i)
    if (t.at(i) != number || std::signbit(t.at(i)) != std::signbit(number)) return false;
  return true;
}

class Simplifier {
 public:
  explicit Simplifier(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (node.inputs.empty()) return std::nullopt;
    if (node.op == &ops::reshape) return reshape(node);
    if (node.op == &ops::transpose) return transpose(node);
    if (node.op == &ops::narrow) return narrow(node);
    if (node.op == &ops::slice) return slice(node);
    if (node.op == &ops::resize) return resize(node);
    if (node.op == &ops::cast || node.op == &ops::expand) return same_type(node);
    if (node.op == &ops::concat && node.inputs.size() == 1) return same_type(node);
    if (node.op == &ops::add || node.op == &ops::sub || node.op == &ops::mul || node.op == &ops::div)
      return identity(node);
    if (node.op == &ops::pow) return power(node);
    return std::nullopt;
  }

 private:
  const TensorType& type(ValueId old) const { return rw_.graph().type(old); }
  Values operand(const Node& node, size_t i) { return {rw_.in(node.inputs[i])}; }
  // A value of the graph being built, by its id there.
  Value built(ValueId id) { return rw_.out().value(id); }

  // Ops that are their operand when its type is the result's.
  std::optional<Values> same_type(const Node& node) {
    if (type(node.inputs[0]) != node.results[0].type) return std::nullopt;
    return operand(node, 0);
  }

  std::optional<Values> reshape(const Node& node) {
    const TensorType& result = node.results[0].type;
    if (type(node.inputs[0]) == result) return operand(node, 0);
    const Node& inner = rw_.producer_now(node.inputs[0]);
    if (inner.op != &ops::reshape) return std::nullopt;
    const Value source = built(inner.inputs[0]);
    if (source.type() == result) return Values{source};
    return Values{ops::reshape(source, {.new_shape = result.shape.dims()})};
  }

  std::optional<Values> transpose(const Node& node) {
    std::vector<int64_t> perm = node.attrs.as<ops::TransposeAttrs>().perm;
    if (std::is_sorted(perm.begin(), perm.end())) return operand(node, 0);
    const Node& inner = rw_.producer_now(node.inputs[0]);
    if (inner.op != &ops::transpose) return std::nullopt;
    for (int64_t& axis : perm) axis = inner.attrs.as<ops::TransposeAttrs>().perm[static_cast<size_t>(axis)];
    const Value source = built(inner.inputs[0]);
    if (std::is_sorted(perm.begin(), perm.end())) return Values{source};
    return Values{ops::transpose(source, {.perm = perm})};
  }

  std::optional<Values> narrow(const Node& node) {
    const auto& attrs = node.attrs.as<ops::NarrowAttrs>();
    if (attrs.start.is(0) && type(node.inputs[0]) == node.results[0].type) return operand(node, 0);
    const Node& inner = rw_.producer_now(node.inputs[0]);
    if (inner.op != &ops::narrow) return std::nullopt;
    const auto first = inner.attrs.as<ops::NarrowAttrs>();
    const int64_t rank = node.results[0].type.rank();
    const int64_t axis = normalize_axis(attrs.axis, rank);
    if (normalize_axis(first.axis, rank) != axis) return std::nullopt;
    if (!attrs.start.is_static() || !first.start.is_static()) return std::nullopt;
    const Value source = built(inner.inputs[0]);
    return Values{ops::narrow(
        source, {.axis = axis, .start = checked_add(first.start.value(), attrs.start.value()), .len = attrs.len})};
  }

  // A slice of one axis without gaps is a narrow, one of none is its operand.
  std::optional<Values> slice(const Node& node) {
    const auto& [start, step, len] = node.attrs.as<ops::SliceAttrs>();
    std::optional<size_t> cut;
    for (size_t a = 0; a < start.size(); ++a) {
      const bool gapless = step[a] == 1 || len[a].is(1);
      if (start[a].is(0) && gapless && len[a] == type(node.inputs[0]).dim(static_cast<int64_t>(a))) continue;
      if (cut || !gapless) return std::nullopt;
      cut = a;
    }
    if (!cut) return operand(node, 0);
    const Dim first = len[*cut].is(0) ? Dim(0) : start[*cut];
    return Values{
        ops::narrow(rw_.in(node.inputs[0]), {.axis = static_cast<int64_t>(*cut), .start = first, .len = len[*cut]})};
  }

  // Element i of a doubled axis is element i / 2 of x.
  static bool takes_half(const ops::ResizeAttrs& a) {
    using ops::ResizeCoordinate;
    using ops::ResizeNearest;
    if (a.mode != ops::ResizeMode::kNearest) return false;
    if (a.coordinate == ResizeCoordinate::kAsymmetric)
      return a.nearest == ResizeNearest::kFloor || a.nearest == ResizeNearest::kRoundPreferFloor;
    return (a.coordinate == ResizeCoordinate::kHalfPixel || a.coordinate == ResizeCoordinate::kPytorchHalfPixel ||
            a.coordinate == ResizeCoordinate::kHalfPixelSymmetric) &&
           (a.nearest == ResizeNearest::kRoundPreferFloor || a.nearest == ResizeNearest::kRoundPreferCeil);
  }

  std::optional<Values> resize(const Node& node) {
    const auto& a = node.attrs.as<ops::ResizeAttrs>();
    const TensorType& x = type(node.inputs[0]);
    if (x.rank() != 4 || !takes_half(a)) return std::nullopt;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t scale = i < 2 ? 1 : 2;
      if (a.sizes[static_cast<size_t>(i)] != rw_.out().symbols().mul(x.dim(i), scale)) return std::nullopt;
      if (!a.scales.empty() && a.scales[static_cast<size_t>(i)] != static_cast<float>(scale)) return std::nullopt;
    }
    return Values{ops::resize_nearest_2x(rw_.in(node.inputs[0]))};
  }

  bool is_constant(ValueId old, double number) {
    const Node& node = rw_.producer_now(old);
    return node.op == &ops::constant && is_all(node.attrs.as<ops::ConstantAttrs>().value, number);
  }

  // x + 0, x - 0, x * 1, x / 1 in the result's own type. x + 0.0 turns -0.0 into 0.0, x + -0.0 changes nothing.
  std::optional<Values> identity(const Node& node) {
    const bool exact_zero = is_float(node.results[0].type.dtype) && !rw_.context().options.ignore_minus_zero;
    const auto is_neutral = [&](ValueId id) {
      if (node.op == &ops::mul || node.op == &ops::div) return is_constant(id, 1);
      if (node.op == &ops::sub) return is_constant(id, 0.0) || (!exact_zero && is_constant(id, -0.0));
      return is_constant(id, -0.0) || (!exact_zero && is_constant(id, 0.0));
    };
    if (type(node.inputs[0]) == node.results[0].type && is_neutral(node.inputs[1])) return operand(node, 0);
    if (node.op->traits.commutative && type(node.inputs[1]) == node.results[0].type && is_neutral(node.inputs[0]))
      return operand(node, 1);
    return std::nullopt;
  }

  // x^1, and x^2 as the product that is rounded once as well.
  std::optional<Values> power(const Node& node) {
    if (type(node.inputs[0]) != node.results[0].type) return std::nullopt;
    if (is_constant(node.inputs[1], 1)) return operand(node, 0);
    if (!is_constant(node.inputs[1], 2)) return std::nullopt;
    const Value x = rw_.in(node.inputs[0]);
    return Values{x * x};
  }

  Rewriter& rw_;
};

}  // namespace

void simplify(Rewriter& rw) {
  Simplifier simplifier(rw);
  rw.for_each([&](const Node& node) { return simplifier.visit(node); });
}

}  // namespace rlx::passes
