// A node whose operands are all constants becomes a constant, computed by the oracle: the value is what a run gives.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewriter.h"
#include "rlx/ops/leaves.h"

namespace rlx::passes {

namespace {

// An op whose work is its operands' elements, more or less; others (products, convolutions) are folded when small,
// because the oracle is slow and nobody waits for a compiler.
bool is_light(const OpDef& op) {
  return op.traits.elementwise || op.traits.reduction || op.view != nullptr || op.category == "Shape" ||
         op.category == "Gather and scatter";
}

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<int64_t>(t.bytes().size());
  return bytes;
}

int64_t largest(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes = std::max(bytes, static_cast<int64_t>(t.bytes().size()));
  return bytes;
}

}  // namespace

void fold_constants(Rewriter& rw) {
  if (!rw.context().evaluate) return;
  const int64_t cap = rw.context().limits.fold_bytes;
  rw.for_each([&](const Node& node) -> std::optional<Values> {
    if (node.inputs.empty()) return std::nullopt;
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) {
      const Node& producer = rw.producer_now(id);
      if (producer.op != &ops::constant) return std::nullopt;
      operands.push_back(producer.attrs.as<ops::ConstantAttrs>().value);
    }
    if (!node.attrs.graphs().empty()) return std::nullopt;  // bodies may need params
    int64_t result_bytes = 0;
    for (const Result& r : node.results) {
      if (!r.type.shape.is_static()) return std::nullopt;
      result_bytes = checked_add(result_bytes, r.type.size_bytes());
    }
    const int64_t operand_bytes = bytes_of(operands);
    if (result_bytes > cap && result_bytes > operand_bytes) return std::nullopt;
    if (result_bytes > rw.context().limits.join_bytes && result_bytes > largest(operands)) return std::nullopt;
    if (!is_light(*node.op) && operand_bytes + result_bytes > cap) return std::nullopt;
    std::vector<Tensor> results;
    try {
      results = rw.context().evaluate(*node.op, operands, node.attrs);
    } catch (const Error& e) {
      // The run is where this error belongs, if the node is ever run.
      rw.miss(node, "EvaluationFails", e.message());
      return std::nullopt;
    }
    Values values;
    for (const Tensor& t : results) values.push_back(rw.out().constant(t));
    return values;
  });
}

}  // namespace rlx::passes
