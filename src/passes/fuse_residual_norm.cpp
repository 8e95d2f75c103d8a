// A residual sum and the norm that reads it: one node, which also gives the sum to whoever else reads it (spec 20,
// 1.4.8 and 3.3).
#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/fused_residual_norm.h"
#include "rlx/ops/norm.h"

namespace rlx::passes {

namespace {

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    if (node.op == &ops::add) return visit_sum(node);
    if (const auto it = teed_.find(&node); it != teed_.end()) return Values{rw_.out().value(it->second)};
    const auto match = match_norm(node, true);
    if (!match || !rw_.uses().sole_use(node.inputs[0], node)) return std::nullopt;
    return Values{build(*match)};
  }

 private:
  struct Terms {
    ValueId x = 0, residual = 0;
    std::optional<ValueId> bias;
  };
  struct Match {
    const OpDef* op = nullptr;
    Attrs attrs;
    std::vector<ValueId> operands;
    Shape shape;  // of x and residual
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  // The sum is needed by others too: the fused node stands in its place, and the norm, which comes later, is its
  // result 0. Of several norms the first is taken.
  std::optional<Values> visit_sum(const Node& sum) {
    const ValueId id = sum.results[0].id;
    const UseInfo& uses = rw_.uses();
    for (const int64_t reader : uses.consumers(id)) {
      const Node& norm = rw_.graph().nodes()[static_cast<size_t>(reader)];
      const auto match = match_norm(norm, false);
      if (!match || norm.inputs[0] != id) continue;
      if (uses.sole_use(id, norm)) return std::nullopt;  // left to the norm's turn
      bool ready = true;  // a scale that is computed from the sum, or after it, is not there yet
      for (const ValueId operand : match->operands) ready = ready && (rw_.can_have(operand) || rw_.is_static(operand));
      if (!ready) {
        rw_.miss(norm, "MultiConsumer", "The sum is read elsewhere too, and gamma or beta is computed after it.");
        continue;
      }
      const Value fused = build(*match);
      teed_.emplace(&norm, fused.id());
      return Values{fused.result(1)};
    }
    return std::nullopt;
  }

  std::optional<Match> match_norm(const Node& norm, bool report) {
    if (is_unused(rw_, norm)) return std::nullopt;
    const bool is_ln = norm.op == &ops::layer_norm;
    if (!is_ln && norm.op != &ops::rms_norm) return std::nullopt;
    const int64_t axis = is_ln ? norm.attrs.as<ops::LayerNormAttrs>().axis : norm.attrs.as<ops::RmsNormAttrs>().axis;
    const int64_t rank = norm.results[0].type.rank();
    if (normalize_axis(axis, rank) != rank - 1) return std::nullopt;
    const auto terms = terms_of(rw_.producer(norm.inputs[0]), norm, report);
    if (!terms) return std::nullopt;
    Match match{is_ln ? static_cast<const OpDef*>(&ops::fused_residual_ln) : &ops::fused_residual_rms_norm,
                Attrs(),
                {terms->x, terms->residual}};
    if (terms->bias) match.operands.push_back(*terms->bias);
    match.operands.insert(match.operands.end(), norm.inputs.begin() + 1, norm.inputs.end());
    const bool has_bias = terms->bias.has_value();
    match.attrs =
        is_ln ? Attrs(ops::FusedResidualLnAttrs{.has_bias = has_bias, .eps = norm.attrs.as<ops::LayerNormAttrs>().eps})
              : Attrs(ops::FusedResidualRmsNormAttrs{.has_bias = has_bias,
                                                     .eps = norm.attrs.as<ops::RmsNormAttrs>().eps});
    match.shape = norm.results[0].type.shape;
    std::vector<TensorType> types = types_of(rw_, match.operands);
    types[0].shape = types[1].shape = match.shape;
    if (!rw_.claims(*match.op, match.attrs, types)) return std::nullopt;
    return match;
  }

  // Of the sum's shape, or without its leading ones: nothing is repeated then, the bytes are the same.
  bool is_full(ValueId id, const TensorType& sum) const {
    const int64_t missing = sum.rank() - type(id).rank();
    for (int64_t axis = 0; axis < sum.rank(); ++axis)
      if (axis < missing ? !sum.dim(axis).is(1) : type(id).dim(axis - missing) != sum.dim(axis)) return false;
    return true;
  }
  bool is_row(ValueId id, const TensorType& sum) const {
    return sum.rank() > 1 && type(id).rank() == 1 && type(id).dim(0) == last_dim(sum);
  }

  // x + b as (x, b) in either order.
  std::optional<std::pair<ValueId, ValueId>> biased(const Node& node, const TensorType& sum) const {
    if (node.op != &ops::add) return std::nullopt;
    for (size_t side = 0; side < 2; ++side)
      if (is_full(node.inputs[side], sum) && is_row(node.inputs[1 - side], sum))
        return std::pair{node.inputs[side], node.inputs[1 - side]};
    return std::nullopt;
  }

  // x + residual, or the same with a bias in any association: (x + b) + r, x + (r + b), (x + r) + b.
  std::optional<Terms> terms_of(const Node& sum, const Node& norm, bool report) {
    if (sum.op != &ops::add) return std::nullopt;
    const TensorType& full = sum.results[0].type;
    const ValueId a = sum.inputs[0], b = sum.inputs[1];
    if (const auto outer = biased(sum, full)) {
      const Node& inner = rw_.producer(outer->first);
      if (inner.op != &ops::add || !is_full(inner.inputs[0], full) || !is_full(inner.inputs[1], full))
        return std::nullopt;
      if (rw_.uses().sole_use(outer->first, sum)) return Terms{inner.inputs[0], inner.inputs[1], outer->second};
      if (report) rw_.miss(norm, "MultiConsumer", "The sum before the bias is read elsewhere too, or is an output.");
      return std::nullopt;
    }
    if (!is_full(a, full) || !is_full(b, full)) return std::nullopt;
    if (const auto inner = biased(rw_.producer(a), full); inner && rw_.uses().sole_use(a, sum))
      return Terms{inner->first, b, inner->second};
    if (const auto inner = biased(rw_.producer(b), full); inner && rw_.uses().sole_use(b, sum))
      return Terms{a, inner->first, inner->second};
    return Terms{a, b, std::nullopt};
  }

  Value build(const Match& match) {
    Values operands;
    for (const ValueId id : match.operands) operands.push_back(rw_.in(id));
    for (Value& full : std::span(operands).first(2)) full = reshaped(full, match.shape.dims());
    return rw_.out().add(*match.op, operands, match.attrs);
  }

  Rewriter& rw_;
  std::unordered_map<const Node*, ValueId> teed_;  // looked up only
};

}  // namespace

void fuse_residual_norm(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
