// conv, + bias, + residual, activation: one node.
#include <algorithm>

#include "passes/conv_terms.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/conv.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/fused_conv.h"

namespace rlx::passes {

namespace {

using ops::ActivationKind;

class Fuser {
 public:
  explicit Fuser(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    if (const ActivationKind kind = activation_of(*node.op); kind != ActivationKind::kNone) {
      const auto match = match_operand(node, 0);
      if (!match) {
        report_activation(node);
        return std::nullopt;
      }
      if (!claimed(*match, kind)) {
        if (claimed(*match, ActivationKind::kNone))
          rw_.miss(node, "UnsupportedEpilogueActivation", "The target has no conv with this activation behind it.");
        return std::nullopt;
      }
      return build(*match, kind);
    }
    if (node.op != &ops::add) return std::nullopt;
    const auto match = match_sum(node);
    if (!match) {
      report_sum(node);
      return std::nullopt;
    }
    if (taken_later(*match, node) || !claimed(*match, ActivationKind::kNone)) return std::nullopt;
    return build(*match, ActivationKind::kNone);
  }

 private:
  struct Bias {
    ValueId value = 0;
    PerChannel kind = PerChannel::kNo;
  };
  struct Match {
    const Node* conv = nullptr;
    std::vector<Bias> biases;  // besides the conv's own
    std::optional<ValueId> residual;
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  // A conv, or its sum with a bias, a residual or both.
  std::optional<Match> match_operand(const Node& reader, size_t operand, int depth = 0) {
    const ValueId value = reader.inputs[operand];
    if (!rw_.uses().sole_use(value, reader)) return std::nullopt;
    const Node& node = rw_.producer(value);
    if (node.op == &ops::add) return match_sum(node, depth + 1);
    if (node.op != &ops::conv || !node.results[0].type.dim(1).is_static()) return std::nullopt;
    return Match{&node, {}, {}};
  }

  std::optional<Match> match_sum(const Node& sum, int depth = 0) {
    const TensorType& y = sum.results[0].type;
    if (depth == kMostSums || sum.inputs[0] == sum.inputs[1]) return std::nullopt;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId other = sum.inputs[1 - side];
      if (type(sum.inputs[side]) != y) continue;
      const PerChannel kind = per_channel(type(other), y);
      const bool is_bias = is_usable(other, kind) && (type(other) != y || rw_.is_static(other));
      if (!is_bias && type(other) != y) continue;
      auto match = match_operand(sum, side, depth);
      if (!match) continue;
      if (is_bias) {
        match->biases.push_back({other, kind});
        return match;
      }
      if (match->residual) continue;
      match->residual = other;
      return match;
    }
    return std::nullopt;
  }

  // Repeating one number for all channels costs a step, unless it is done once for all runs.
  bool is_usable(ValueId bias, PerChannel kind) {
    return kind == PerChannel::kEach || (kind == PerChannel::kOne && rw_.is_static(bias));
  }

  // Does the only reader of the sum take it along, as part of the same match?
  bool taken_later(const Match& match, const Node& sum) {
    const Node* reader = rw_.uses().sole_consumer(sum.results[0].id);
    if (reader == nullptr || !rw_.uses().sole_use(sum.results[0].id, *reader)) return false;
    if (const ActivationKind kind = activation_of(*reader->op); kind != ActivationKind::kNone)
      return claimed(match, kind);
    if (reader->op != &ops::add) return false;
    const auto larger = match_sum(*reader);
    return larger && larger->conv == match.conv && claimed(*larger, ActivationKind::kNone);
  }

  static ops::FusedConvBiasActAttrs attrs_of(const Match& match, ActivationKind kind) {
    const auto& a = match.conv->attrs.as<ops::ConvAttrs>();
    return {a.kernel_size, a.stride, a.padding, a.dilation, a.groups, kind};
  }

  bool claimed(const Match& match, ActivationKind kind) const {
    const Node& conv = *match.conv;
    const TensorType& y = conv.results[0].type;
    std::vector<TensorType> types = {type(conv.inputs[0]), type(conv.inputs[1]), {{y.dim(1)}, y.dtype}};
    if (match.residual) types.push_back(y);
    return rw_.claims(ops::fused_conv_bias_act, attrs_of(match, kind), types);
  }

  std::optional<Values> build(const Match& match, ActivationKind kind) {
    const Node& conv = *match.conv;
    const TensorType y = conv.results[0].type;
    Values operands = {rw_.in(conv.inputs[0]), rw_.in(conv.inputs[1])};
    std::optional<Value> bias;
    if (conv.inputs.size() > 2) bias = rw_.in(conv.inputs[2]);
    for (const Bias& b : match.biases) {
      const Value v = as_vector(rw_.in(b.value), b.kind);
      bias = bias ? *bias + v : v;
    }
    if (!bias) bias = rw_.out().constant(Tensor(y.dtype, {y.dim(1).value()}));
    if (bias->shape()[0] != y.dim(1)) bias = ops::expand(*bias, {.target_shape = {y.dim(1)}});
    operands.push_back(*bias);
    if (match.residual) operands.push_back(rw_.in(*match.residual));
    return Values{rw_.out().add(ops::fused_conv_bias_act, operands, attrs_of(match, kind))};
  }

  bool is_conv_or_sum(const Node& node) const {
    if (node.op == &ops::conv) return true;
    if (node.op != &ops::add) return false;
    return rw_.producer(node.inputs[0]).op == &ops::conv || rw_.producer(node.inputs[1]).op == &ops::conv;
  }

  void report_activation(const Node& node) {
    if (is_conv_or_sum(rw_.producer(node.inputs[0])) && !rw_.uses().sole_use(node.inputs[0], node))
      rw_.miss(node, "MultiConsumer", "What the activation reads is read elsewhere too, or is an output.");
  }

  void report_sum(const Node& sum) {
    for (size_t side = 0; side < 2; ++side) {
      if (rw_.producer(sum.inputs[side]).op != &ops::conv) continue;
      if (!rw_.uses().sole_use(sum.inputs[side], sum))
        rw_.miss(sum, "MultiConsumer", "The convolution without the sum is read elsewhere too, or is an output.");
      else
        rw_.miss(sum, "NeitherBiasNorResidual",
                 "What is added to the convolution is neither one number per channel nor of its shape.");
      return;
    }
  }

  static constexpr int kMostSums = 4;  // a long chain of sums is no reason for long searches

  Rewriter& rw_;
};

}  // namespace

void fuse_conv_bias_act(Rewriter& rw) {
  Fuser fuser(rw);
  rw.for_each([&](const Node& node) { return fuser.visit(node); });
}

}  // namespace rlx::passes
