// Which steps an active extent cuts short (spec 40, 5), and their parameters and grids.
#include <algorithm>
#include <tuple>

#include "backends/host/box_copy.h"
#include "backends/webgpu/executor.h"
#include "rlx/log.h"

namespace rlx::webgpu {

const Graph& WebGpuProgram::full_graph() {
  if (!full_) {
    full_ = bind(program_.symbolic, program_.binding);
    used_ = host::used_values(*full_);
  }
  return *full_;
}

namespace {

bool yields_state(const Step& step, const Node& node) {
  return step.op->traits.state_result >= 0 && step.op->traits.state_result < static_cast<int>(node.results.size());
}

}  // namespace

bool WebGpuProgram::set_active_sizes(const std::optional<DimBinding>& sizes) {
  active_ = sizes;
  std::vector<Rows> rows(dispatches_.size(), Rows::kAll);
  Extent extent;
  bool honoured = true;
  if (sizes) {
    RLX_ASSERT(program_.bucket && "an extent without a bucket symbol");
    extent = {sizes->find(*program_.bucket).value(), program_.binding.find(*program_.bucket).value()};
    const std::string why = find_scaled(*sizes, extent, rows);
    honoured = why.empty();
    if (!honoured) {
      log(LogLevel::kInfo, str("The active extent is not used: ", why));
      rows.assign(dispatches_.size(), Rows::kAll);
      scale_states(*sizes, extent, rows);
      scale_checks(*sizes, extent, rows);
    }
  }
  for (ReadyStep& r : ready_)
    if (auto* h = std::get_if<HostCall>(&r.step->work)) {
      const auto node = static_cast<size_t>(r.step->graph_node);
      const bool cut = sizes && (honoured || yields_state(*r.step, full_graph().nodes()[node]));
      h->program->set_active_sizes(cut ? sizes : std::nullopt);
    }
  set_end_ranges();
  dispatches_.set_extent(extent, rows, stats_);
  write_dim_values();
  device_->check("setting the active extent");
  return honoured;
}

// Of the node's operands, and of its results that somebody uses.
std::pair<std::vector<host::ExtentType>, std::vector<host::ExtentType>> WebGpuProgram::extent_types(
    const Node& full, const Node& node, const Graph& active) const {
  std::vector<host::ExtentType> inputs, outputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back({full_->type(full.inputs[i]).shape.sizes(), active.type(node.inputs[i])});
  for (size_t r = 0; r < node.results.size(); ++r)
    if (used_.contains(full.results[r].id))
      outputs.push_back({full.results[r].type.shape.sizes(), node.results[r].type});
  return {std::move(inputs), std::move(outputs)};
}

// Why a step cannot be cut to the rows in use; empty when it can. `touches`: does it see a value with these rows?
std::string WebGpuProgram::why_not_scaled(const Step& step, const Graph& active, const Extent& extent,
                                          bool& touches) const {
  const auto* d = std::get_if<Dispatch>(&step.work);
  const Node& full = full_->nodes()[static_cast<size_t>(step.graph_node)];
  const Node& node = active.nodes()[static_cast<size_t>(step.graph_node)];
  std::vector<host::ExtentType> inputs, outputs;
  if (step.is_of_one_value()) {  // of one of the operands, or results
    const ProgramValue& v = value(d->operands[0].value);
    inputs.push_back({v.type.shape.sizes(), {v.symbolic.shape.bind(*active_), v.type.dtype}});
  } else {
    std::tie(inputs, outputs) = extent_types(full, node, active);
  }
  touches = false;
  // Parameters are those of all rows, but for counts. (One value's form has none of the node's attributes.)
  if (!step.is_of_one_value() && d != nullptr && host::begins_elsewhere(*step.op, full.attrs, node.attrs)) {
    touches = true;
    return "begins elsewhere at each size";
  }
  for (const auto* list : {&inputs, &outputs})
    for (const host::ExtentType& t : *list) touches |= t.axis() >= 0;
  if (!touches && !step.is_of_one_value() && !std::holds_alternative<HostCall>(step.work) && full.attrs != node.attrs) {
    touches = true;
    return "is another at each size";
  }
  if (!touches) return "";
  if (!step.is_of_one_value() && host::picks_rows(*step.op, node.attrs, inputs, outputs)) {
    touches = false;
    return "";
  }
  if (step.is_of_one_value()) {
    if (!host::is_prefix(inputs[0].active.shape.sizes(), inputs[0].full))
      return "has another size in front of the rows";
  } else {
    if (std::string why = host::why_unsafe(*step.op, node.attrs, inputs, outputs); !why.empty()) return why;
    if (d == nullptr || step.op->traits.extent == ExtentRule::kFull) return "";
    if (!d->extent_safe || (step.op->traits.extent == ExtentRule::kOwnBound && !d->own_bound && !d->is_copy))
      return str("has a kernel (", d->kernel.kernel, ") that cannot be cut short");
  }
  // A row of an operand that is broadcast along its own rows meets all rows of the result.
  if (step.op->traits.elementwise && !step.is_of_one_value())
    for (const host::ExtentType& t : inputs)
      if (const int64_t axis = t.axis();
          axis >= 0 && outputs[0].active.rank() - t.active.rank() + axis != outputs[0].axis())
        return "meets its rows along another axis";
  // Counts are cut in proportion.
  for (const auto* list : {&inputs, &outputs})
    for (const host::ExtentType& t : *list)
      if (const int64_t axis = t.axis(); axis >= 0 && checked_mul(t.active.dim(axis).value(), extent.upper) !=
                                                          checked_mul(t.full[static_cast<size_t>(axis)], extent.actual))
        return "has rows that are not in proportion to the extent";
  return "";
}

// Every step at the rows in use, if every step can be cut short; else why not.
std::string WebGpuProgram::find_scaled(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows) {
  full_graph();
  std::optional<Graph> active;
  try {
    active = bind(program_.symbolic, sizes);
  } catch (const Error& e) {  // a narrow of fixed rows that are not there, say
    return e.message();
  }
  if (std::string why = host::moved_view(*active, program_.views); !why.empty()) return why;
  for (const Step& step : program_.static_steps) {
    if (step.node_text.empty() || step.is_of_one_value()) continue;
    const Node& full = full_->nodes()[static_cast<size_t>(step.graph_node)];
    const Node& node = active->nodes()[static_cast<size_t>(step.graph_node)];
    const auto [inputs, outputs] = extent_types(full, node, *active);
    if (const std::string why = host::why_not_prefix(*step.op, full.attrs, node.attrs, inputs, outputs); !why.empty())
      return str(step.node, " (", step.op->name, ") ", why, ".");
  }
  for (const ReadyStep& r : ready_) {
    bool touches = false;
    if (const std::string why = why_not_scaled(*r.step, *active, extent, touches); !why.empty())
      return str(r.step->node, " (", r.step->op->name, ") ", why, ".");
    if (r.dispatch >= 0 && touches && (r.step->is_of_one_value() || r.step->op->traits.extent != ExtentRule::kFull))
      rows[static_cast<size_t>(r.dispatch)] = Rows::kInUse;
  }
  return "";
}

// All rows, but for the steps that yield a state: padded rows must not enter it (spec 10, 3.8).
void WebGpuProgram::scale_states(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows) {
  std::optional<Graph> active;
  for (const ReadyStep& r : ready_) {
    const Node& full = full_graph().nodes()[static_cast<size_t>(r.step->graph_node)];
    if (r.dispatch < 0 || r.step->is_of_one_value() || !yields_state(*r.step, full)) continue;
    if (!active) {
      active = bind(program_.symbolic, sizes);
      if (const std::string moved = host::moved_view(*active, program_.views); !moved.empty())
        fail(ErrorKind::kUnsupported,
             str("The graph updates a state and ", moved, ", which an active extent would move."));
    }
    bool touches = false;
    const std::string why = why_not_scaled(*r.step, *active, extent, touches);
    const auto& d = std::get<Dispatch>(r.step->work);
    if (touches && !(d.extent_safe && (d.own_bound || d.is_copy)))
      fail(ErrorKind::kUnsupported,
           str("An active extent would let padded rows into the state that ", r.step->node, " (", r.step->op->name,
               ") yields: it ", why.empty() ? "cannot be cut short" : why, "."));
    if (touches) rows[static_cast<size_t>(r.dispatch)] = Rows::kInUse;
  }
}

// Indices beyond the rows in use may be anything, whatever the steps do: a check that cannot be cut to them is left
// out.
void WebGpuProgram::scale_checks(const DimBinding& sizes, const Extent& extent, std::vector<Rows>& rows) {
  if (program_.index_errors < 0) return;
  std::optional<Graph> active;
  try {
    active = bind(program_.symbolic, sizes);
    if (!host::moved_view(*active, program_.views).empty()) active.reset();
  } catch (const Error&) {  // there is no graph of these sizes, so none of its values is known
  }
  full_graph();
  for (const ReadyStep& r : ready_) {
    if (!notes_bad_indices(*r.step)) continue;
    Rows& mine = rows[static_cast<size_t>(r.dispatch)];
    if (mine != Rows::kAll) continue;  // of a step that yields a state
    bool touches = true;
    const bool fits = active && why_not_scaled(*r.step, *active, extent, touches).empty();
    if (touches) mine = fits ? Rows::kInUse : Rows::kNone;
  }
}

}  // namespace rlx::webgpu
