// A value that lies on the grid of a fake_quantize already need not be rounded to it again: the second of two goes
// (spec 20, 1.4.14).
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/activation.h"
#include "rlx/ops/fake_quantize.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/pool.h"
#include "rlx/ops/reshape.h"
#include "rlx/ops/transpose.h"

namespace rlx::passes {

namespace {

// What may stand between the two.
enum class Between {
  kNothingSafe,
  kAllElements,   // the same elements in another order or shape
  kSomeElements,  // some of them
  kNewElements,   // zeros, or the largest of several: on the grid as well
};

// Every window sees an element; one of padding alone is -inf, which is not on the grid.
bool has_padding(const ops::PoolAttrs& attrs) {
  for (const int64_t p : attrs.padding)
    if (p != 0) return true;
  return attrs.ceil_mode;
}

Between kind_of(const Node& node, const std::optional<int64_t>& axis) {
  if (node.op == &ops::relu) return Between::kNewElements;
  if (node.op == &ops::pool_max) {
    const int64_t rank = node.results[0].type.rank();
    const bool keeps_channels = !axis || normalize_axis(*axis, rank) < 2;
    return keeps_channels && !has_padding(node.attrs.as<ops::PoolAttrs>()) ? Between::kNewElements
                                                                           : Between::kNothingSafe;
  }
  if (axis) return Between::kNothingSafe;  // the channels may move
  if (node.op == &ops::reshape || node.op == &ops::transpose) return Between::kAllElements;
  if (node.op == &ops::narrow) return Between::kSomeElements;
  return Between::kNothingSafe;
}

bool is_redundant(const Rewriter& rw, const Node& second) {
  const auto& attrs = second.attrs.as<ops::FakeQuantizeAttrs>();
  if (attrs.scale_mode == ops::ScaleMode::kEma) return false;  // its state is a result
  const Node* node = &rw.producer(second.inputs[0]);
  bool all_elements = true;
  while (node->op != &ops::fake_quantize) {
    const Between between = kind_of(*node, attrs.axis);
    if (between == Between::kNothingSafe) return false;
    all_elements = all_elements && between == Between::kAllElements;
    node = &rw.producer(node->inputs[0]);
  }
  const auto& first = node->attrs.as<ops::FakeQuantizeAttrs>();
  if (first.bits != attrs.bits || first.axis != attrs.axis || first.ste != attrs.ste ||
      first.scale_mode != attrs.scale_mode)
    return false;
  if (attrs.scale_mode == ops::ScaleMode::kFixed) return node->inputs[1] == second.inputs[1];
  // The scale of the batch is that of the whole tensor: the same only when every element is still there.
  return all_elements && !attrs.axis;
}

}  // namespace

void quant_propagate(Rewriter& rw) {
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.op != &ops::fake_quantize || is_unused(rw, node) || !is_redundant(rw, node)) return std::nullopt;
    return Values{rw.in(node.inputs[0])};
  });
}

}  // namespace rlx::passes
