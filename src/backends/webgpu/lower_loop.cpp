#include "backends/webgpu/lower_loop.h"

#include <algorithm>

#include "ops/cost.h"
#include "rlx/ops/control_flow.h"
#include "rlx/ops/leaves.h"

namespace rlx::webgpu {

namespace {

double work_of(const Graph& graph) {
  double work = 0;
  for (const Node& node : graph.nodes()) {
    for (const GraphPtr& region : node.attrs.graphs())
      if (region) work += work_of(*region);
    if (node.op->traits.leaf || !node.attrs.graphs().empty()) continue;
    std::vector<TensorType> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(graph.type(id));
    for (const Result& r : node.results) outputs.push_back(r.type);
    const Cost cost = cost_of(*node.op, node.attrs, inputs, outputs);
    work += cost.flops + cost.bytes;
  }
  return work;
}

// The region with its first inputs as states that take its first outputs: the plan computes them in place where it can.
Graph with_states(const Graph& body, int64_t carries) {
  Graph out = body.empty_revision();
  std::vector<ValueId> states;
  for (const Node& node : body.nodes()) {
    Node copy = node;
    if (node.op == &ops::input && static_cast<int64_t>(states.size()) < carries) {
      copy.op = &ops::state;
      states.push_back(node.results[0].id);
    }
    out.append(std::move(copy));
  }
  std::vector<Output> outputs = body.outputs();
  std::vector<StateUpdate> updates;
  for (size_t i = 0; i < states.size(); ++i)
    if (outputs[i].value != states[i]) updates.push_back({states[i], outputs[i].value});
  outputs.erase(outputs.begin(), outputs.begin() + carries);
  out.set_outputs(std::move(outputs));
  out.set_updates(std::move(updates));
  return out;
}

bool runs_on_device(const Program& program) {
  for (const auto* steps : {&program.steps, &program.static_steps})
    for (const Step& s : *steps)
      if (std::holds_alternative<HostCall>(s.work)) return false;
  const auto is_there = [&](int32_t v) {
    const ProgramValue& value = program.values[static_cast<size_t>(v)];
    return value.storage != Storage::kHost || value.type.shape.num_elements() == 0;
  };
  for (size_t v = 0; v < program.values.size(); ++v) {
    const Source source = program.values[v].source;
    if ((source == Source::kInput || source == Source::kState) && !is_there(static_cast<int32_t>(v))) return false;
  }
  return std::all_of(program.outputs.begin(), program.outputs.end(), is_there);
}

// Rows of a stack start at words.
bool has_whole_words(const Program& program, int32_t v) {
  const ProgramValue& value = program.values[static_cast<size_t>(v)];
  return value.type.shape.num_elements() * storage_element_bytes(value.storage, value.type.dtype) % 4 == 0;
}

}  // namespace

std::optional<Loop> lower_loop(const Node& node, const Device& device, const CompileOptions& options) {
  Loop loop;
  std::vector<Graph> regions;
  if (node.op == &ops::if_) {
    const auto& a = node.attrs.as<ops::IfAttrs>();
    regions = {*a.then_branch, *a.else_branch};
  } else if (node.op == &ops::while_) {
    const auto& a = node.attrs.as<ops::WhileAttrs>();
    loop.kind = Loop::Kind::kWhile;
    loop.carries = static_cast<int64_t>(node.inputs.size());
    loop.trips = a.max_iterations.value_or(-1);
    regions = {*a.cond, with_states(*a.body, loop.carries)};
  } else if (node.op == &ops::scan) {
    const auto& a = node.attrs.as<ops::ScanAttrs>();
    loop.kind = Loop::Kind::kScan;
    loop.carries = a.num_carries;
    loop.broadcast = a.num_bcast;
    loop.trips = a.length.value();
    if (a.save_trajectory) loop.kept = ops::checkpoint_steps(loop.trips, a.num_checkpoints);
    regions = {with_states(*a.body, loop.carries)};
  } else {
    return std::nullopt;
  }
  double work = 0;
  for (const Graph& g : regions) work = std::max(work, work_of(g));
  if (work < static_cast<double>(options.webgpu.min_loop_work) && !options.webgpu.no_host_steps) return std::nullopt;
  for (const Graph& g : regions) {
    try {
      loop.regions.push_back(std::make_shared<Program>(lower(g, manifest_of(g), {}, device, options, true)));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kUnsupported) throw;
      return std::nullopt;
    }
    if (!runs_on_device(*loop.regions.back())) return std::nullopt;
  }
  if (loop.kind == Loop::Kind::kScan) {
    const Program& body = *loop.regions[0];
    for (size_t v = 0; v < body.values.size(); ++v)
      if (body.values[v].source == Source::kInput && !has_whole_words(body, static_cast<int32_t>(v)))
        return std::nullopt;
    for (const int32_t v : body.outputs)
      if (!has_whole_words(body, v)) return std::nullopt;
    if (!loop.kept.empty() && !has_whole_words(body, body.state_values[0])) return std::nullopt;
  }
  return loop;
}

}  // namespace rlx::webgpu
