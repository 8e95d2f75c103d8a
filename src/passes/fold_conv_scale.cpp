// A convolution whose result is scaled and shifted per channel by numbers that never change, as a batch norm does, is a
// convolution with other weights: conv(x, w) * s + t = conv(x, w * s) + t. The products are weights of weights,
// computed once.
#include "passes/conv_terms.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/conv.h"
#include "rlx/ops/expand.h"

namespace rlx::passes {

namespace {

class Folder {
 public:
  explicit Folder(Rewriter& rw) : rw_(rw) {}

  std::optional<Values> visit(const Node& node) {
    if (is_unused(rw_, node)) return std::nullopt;
    const std::optional<Step> step = as_step(node);
    if (!step || rw_.is_static(node.results[0].id)) return std::nullopt;
    // The last of several takes them all.
    if (const Node* reader = rw_.uses().sole_consumer(node.results[0].id)) {
      const std::optional<Step> next = as_step(*reader);
      if (next && next->value == node.results[0].id) return std::nullopt;
    }
    std::vector<Step> steps = {*step};  // the last first
    const Node* producer = &rw_.producer(step->value);
    while (producer->op != &ops::conv && producer->op != &ops::conv_transpose) {
      const std::optional<Step> before = as_step(*producer);
      if (!before || !rw_.uses().sole_use(steps.back().value, *steps.back().node)) return std::nullopt;
      steps.push_back(*before);
      producer = &rw_.producer(before->value);
    }
    return fold(*producer, steps);
  }

 private:
  // value (+, -, *, /) number; the value is on the left where it matters.
  struct Step {
    const Node* node = nullptr;
    ValueId value = 0, number = 0;
    PerChannel kind = PerChannel::kNo;
  };

  const TensorType& type(ValueId id) const { return rw_.graph().type(id); }

  std::optional<Step> as_step(const Node& node) {
    const bool commutes = node.op == &ops::add || node.op == &ops::mul;
    if (!commutes && node.op != &ops::sub && node.op != &ops::div) return std::nullopt;
    const TensorType& y = node.results[0].type;
    if (y.rank() < 3 || !is_float(y.dtype)) return std::nullopt;
    for (size_t side = 0; side < (commutes ? 2 : 1); ++side) {
      const ValueId value = node.inputs[side], number = node.inputs[1 - side];
      if (type(value) != y || !rw_.is_static(number)) continue;
      if (const PerChannel kind = per_channel(type(number), y); kind != PerChannel::kNo)
        return Step{&node, value, number, kind};
    }
    return std::nullopt;
  }

  std::optional<Values> fold(const Node& conv, const std::vector<Step>& steps) {
    const Node& first = *steps.back().node;
    if (!rw_.uses().sole_use(conv.results[0].id, first)) {
      rw_.miss(first, "MultiConsumer",
               "The convolution without scale and shift is read elsewhere too, or is an output.");
      return std::nullopt;
    }
    bool fixed = rw_.is_static(conv.inputs[1]);
    if (conv.inputs.size() > 2) fixed = fixed && rw_.is_static(conv.inputs[2]);
    if (!fixed) {
      rw_.miss(first, "WeightIsNotStatic", "The convolution's weight is computed in every run.");
      return std::nullopt;
    }
    if (!conv.results[0].type.dim(1).is_static()) return std::nullopt;
    const Value x = rw_.in(conv.inputs[0]);
    Value w = rw_.in(conv.inputs[1]);
    std::optional<Value> bias;
    if (conv.inputs.size() > 2) bias = rw_.in(conv.inputs[2]);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const Value number = as_vector(rw_.in(step->number), step->kind);
      const auto& op = static_cast<const Op<NoAttrs>&>(*step->node->op);
      if (step->node->op == &ops::mul || step->node->op == &ops::div) {
        w = scaled(conv, w, number, op);
        if (bias) bias = op(*bias, number);
      } else if (bias) {
        bias = op(*bias, number);
      } else {
        bias = step->node->op == &ops::add ? number : -number;
      }
    }
    Values operands = {x, w};
    if (bias) {
      const Dim channels = conv.results[0].type.dim(1);
      if (bias->shape()[0] != channels) bias = ops::expand(*bias, {.target_shape = {channels}});
      operands.push_back(*bias);
    }
    return Values{rw_.out().add(*conv.op, operands, conv.attrs)};
  }

  // Every weight by the number of its output channel.
  static Value scaled(const Node& conv, const Value& w, const Value& number, const Op<NoAttrs>& op) {
    const std::vector<Dim> sizes = w.shape().dims();
    const Dim count = number.shape()[0];
    std::vector<Dim> shape(sizes.size(), 1);
    if (conv.op == &ops::conv) {
      shape[0] = count;
      return op(w, reshaped(number, shape));
    }
    // [Cin, Cout / groups, …]: the groups lie along Cin.
    const int64_t groups = conv.attrs.as<ops::ConvTransposeAttrs>().groups;
    if (count.is(1) || groups == 1) {
      shape[1] = count;
      return op(w, reshaped(number, shape));
    }
    std::vector<Dim> split = sizes;
    split[0] = sizes[0].value() / groups;
    split.insert(split.begin(), groups);
    shape.push_back(1);
    shape[0] = groups;
    shape[2] = sizes[1];
    const Value by_group = op(reshaped(w, split), reshaped(number, shape));
    return reshaped(by_group, sizes);
  }

  Rewriter& rw_;
};

}  // namespace

void fold_conv_scale(Rewriter& rw) {
  Folder folder(rw);
  rw.for_each([&](const Node& node) { return folder.visit(node); });
}

}  // namespace rlx::passes
