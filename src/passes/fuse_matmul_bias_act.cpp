// matmul, + bias, activation: one node (spec 20, 1.4.7).
#include <algorithm>

#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/fused_matmul.h"
#include "rlx/ops/matmul.h"

namespace rlx::passes {

namespace {

using ops::ActivationKind;

bool all_ones_before_last(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - 1, [](const Dim& d) { return d.is(1); });
}

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    if (const ActivationKind kind = activation_of(*node.op); kind != ActivationKind::kNone) {
      const Node& sum = rw_.producer(node.inputs[0]);
      const auto match = match_sum(sum);
      if (!match || !takes(*match, sum, node)) return std::nullopt;
      return build(*match, kind);
    }
    report_difference(node);
    const auto match = match_sum(node);
    if (!match) {
      report(node);
      return std::nullopt;
    }
    // An activation that takes the sum along is visited later.
    if (const Node* reader = rw_.uses().sole_consumer(node.results[0].id);
        reader != nullptr && activation_of(*reader->op) != ActivationKind::kNone && takes(*match, node, *reader))
      return std::nullopt;
    report_activation(*match, node);
    if (!claimed(*match, ActivationKind::kNone)) return std::nullopt;
    return build(*match, ActivationKind::kNone);
  }

 private:
  struct Match {
    const Node* matmul = nullptr;
    ValueId bias = 0;
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  // Is it one number per column of the product, or can it be made so? Repeating a number costs a step, unless it is
  // done once for all runs.
  bool fits(ValueId bias, const TensorType& product) {
    const TensorType& t = type(bias);
    if (t.rank() > 0 && last_dim(t) == last_dim(product)) return all_ones_before_last(t.shape);
    const bool one = std::all_of(t.shape.begin(), t.shape.end(), [](const Dim& d) { return d.is(1); });
    return one && (last_dim(product).is(1) || rw_.is_static(bias));
  }

  static bool is_product(const Rewriter& rw, const Node& node) {
    return node.op == &ops::matmul && rw.graph().type(node.inputs[1]).rank() == 2;
  }

  // matmul + bias in either order, whoever reads the matmul.
  std::optional<Match> candidate(const Node& sum) {
    if (sum.op != &ops::add) return std::nullopt;
    for (size_t side = 0; side < 2; ++side) {
      const Node& matmul = rw_.producer(sum.inputs[side]);
      if (!is_product(rw_, matmul) || sum.results[0].type != matmul.results[0].type) continue;
      if (fits(sum.inputs[1 - side], matmul.results[0].type)) return Match{&matmul, sum.inputs[1 - side]};
    }
    return std::nullopt;
  }

  std::optional<Match> match_sum(const Node& sum) {
    const auto match = candidate(sum);
    if (!match || !rw_.uses().sole_use(match->matmul->results[0].id, sum)) return std::nullopt;
    return match;
  }

  bool claimed(const Match& match, ActivationKind kind) const {
    const TensorType &x = type(match.matmul->inputs[0]), &w = type(match.matmul->inputs[1]);
    const TensorType types[] = {x, w, {{w.dim(1)}, w.dtype}};
    return rw_.claims(ops::fused_matmul_bias_act, ops::FusedMatmulBiasActAttrs{.activation = kind}, types);
  }

  bool takes(const Match& match, const Node& sum, const Node& activation) {
    return rw_.uses().sole_use(sum.results[0].id, activation) && claimed(match, activation_of(*activation.op));
  }

  std::optional<Values> build(const Match& match, ActivationKind kind) {
    const Value x = rw_.in(match.matmul->inputs[0]), w = rw_.in(match.matmul->inputs[1]);
    const Dim columns = w.shape()[1];
    Value bias = rw_.in(match.bias);
    bias = reshaped(bias, {bias.shape().rank() == 0 ? Dim(1) : last_dim(bias.type())});
    if (bias.shape()[0] != columns) bias = ops::expand(bias, {.target_shape = {columns}});
    return Values{ops::fused_matmul_bias_act(x, w, bias, {.activation = kind})};
  }

  // Why a sum that looks like a biased product is none.
  void report(const Node& sum) {
    if (sum.op != &ops::add) return;
    if (const auto match = candidate(sum)) {
      rw_.miss(sum, "MultiConsumer", "The product without the bias is read elsewhere too, or is an output.");
      return;
    }
    for (size_t side = 0; side < 2; ++side)
      if (is_product(rw_, rw_.producer(sum.inputs[side])) && rw_.is_static(sum.inputs[1 - side])) {
        rw_.miss(sum, "BiasRankTooHigh", "The weight that is added to the product is not one number per column.");
        return;
      }
  }

  // x·w - b is a bias too, written so that it is not seen.
  void report_difference(const Node& node) {
    if (node.op != &ops::sub || !is_product(rw_, rw_.producer(node.inputs[0])) || !rw_.is_static(node.inputs[1]))
      return;
    const Node& matmul = rw_.producer(node.inputs[0]);
    if (rw_.uses().sole_use(node.inputs[0], node) && fits(node.inputs[1], matmul.results[0].type))
      rw_.miss(node, "NonAddBiasConsumer", "A weight is subtracted from the product; add its negative instead.");
  }

  void report_activation(const Match& match, const Node& sum) {
    for (const int64_t reader : rw_.uses().consumers(sum.results[0].id)) {
      const Node& node = rw_.graph().nodes()[static_cast<size_t>(reader)];
      const ActivationKind kind = activation_of(*node.op);
      if (kind == ActivationKind::kNone) continue;
      if (!rw_.uses().sole_use(sum.results[0].id, node)) {
        rw_.miss(node, "MultiConsumer", "The sum before the activation is read elsewhere too, or is an output.");
        return;
      }
      if (claimed(match, ActivationKind::kNone) && !claimed(match, kind))
        rw_.miss(node, "UnsupportedEpilogueActivation", "The target has no matmul with this activation behind it.");
    }
  }

  Rewriter& rw_;
};

}  // namespace

void fuse_matmul_bias_act(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
