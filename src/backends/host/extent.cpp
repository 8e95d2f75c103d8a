#include "backends/host/extent.h"

#include "backends/host/box_copy.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/gather.h"
#include "rlx/ops/narrow.h"
#include "rlx/ops/slice.h"

namespace rlx::host {

std::unordered_set<ValueId> used_values(const Graph& graph) {
  std::unordered_set<ValueId> used;
  for (const Output& o : graph.outputs()) used.insert(o.value);
  for (const StateUpdate& u : graph.updates()) used.insert({u.state, u.value});
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool needed = false;
    for (const Result& r : node->results) needed |= used.contains(r.id);
    if (needed) used.insert(node->inputs.begin(), node->inputs.end());
  }
  return used;
}

std::string moved_view(const Graph& active, std::span<const ProgramView> views) {
  SymbolTable symbols = active.symbols();
  for (const ProgramView& v : views) {
    const Node& node = active.nodes()[static_cast<size_t>(v.graph_node)];
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) types.push_back(active.type(id));
    const auto view = node.op->view(InferCall(*node.op, types, node.attrs, symbols));
    if (!view || view->offset_elems != v.offset_elems)
      return str("node ", active.label(node.results[0].id), " (", node.op->name, ") lies elsewhere at each size");
  }
  return "";
}

int64_t ExtentType::axis() const {
  for (int64_t i = 0; i < active.rank(); ++i)
    if (!active.dim(i).is(full[static_cast<size_t>(i)])) return i;
  return -1;
}

bool picks_rows(const OpDef& op, const Attrs& attrs, std::span<const ExtentType> inputs,
                std::span<const ExtentType> outputs) {
  if (&op != &ops::gather || inputs[0].axis() < 0 || inputs[1].axis() >= 0) return false;
  if (!is_prefix(inputs[0].active.shape.sizes(), inputs[0].full)) return false;
  for (const ExtentType& out : outputs)
    if (out.axis() >= 0) return false;
  return normalize_axis(attrs.as<ops::GatherAttrs>().axis, inputs[0].active.rank()) == inputs[0].axis();
}

std::string why_unsafe(const OpDef& op, const Attrs& attrs, std::span<const ExtentType> inputs,
                       std::span<const ExtentType> outputs) {
  if (picks_rows(op, attrs, inputs, outputs)) return "";
  bool read = false, written = false, all_written = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t axis = inputs[i].axis();
    if (axis < 0) continue;
    read = true;
    if (!is_prefix(inputs[i].active.shape.sizes(), inputs[i].full)) return "has another size in front of the rows";
    const ExtentRule rule = op.traits.extent;
    if (i == 0 && (rule == ExtentRule::kRows || rule == ExtentRule::kFull) && op.mixes_axis &&
        op.mixes_axis(attrs, inputs[i].active.rank(), axis))
      return "works along the rows";
    if (i > 0 && rule == ExtentRule::kFull) return "has the rows in another operand than its first";
  }
  for (const ExtentType& out : outputs) {
    const bool carries = out.axis() >= 0;
    written |= carries;
    all_written &= carries;
    if (carries && !is_prefix(out.active.shape.sizes(), out.full)) return "has another size in front of the rows";
  }
  if (!read && !written) return "";
  if (op.traits.extent == ExtentRule::kNever) return "cannot be cut short";
  if (op.traits.extent == ExtentRule::kRows && read != all_written) return "does not keep the rows apart";
  return "";
}

bool begins_elsewhere(const OpDef& op, const Attrs& full, const Attrs& active) {
  if (&op == &ops::narrow) return full.as<ops::NarrowAttrs>().start != active.as<ops::NarrowAttrs>().start;
  return &op == &ops::slice && full.as<ops::SliceAttrs>().start != active.as<ops::SliceAttrs>().start;
}

std::string why_not_prefix(const OpDef& op, const Attrs& full, const Attrs& active, std::span<const ExtentType> inputs,
                           std::span<const ExtentType> outputs) {
  bool read = false, written = false;
  for (const ExtentType& t : inputs) read |= t.axis() >= 0;
  for (const ExtentType& t : outputs) written |= t.axis() >= 0;
  const bool makes_rows = &op == &ops::expand || &op == &ops::narrow || &op == &ops::slice;
  if (begins_elsewhere(op, full, active) || (!read && !(written && makes_rows) && full != active))
    return "is another at each size";
  if (read) return why_unsafe(op, active, inputs, outputs);
  for (const ExtentType& t : outputs)
    if (t.axis() >= 0 && !is_prefix(t.active.shape.sizes(), t.full)) return "has another size in front of the rows";
  return "";
}

}  // namespace rlx::host
