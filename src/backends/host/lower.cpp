#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "backends/host/program.h"
#include "rlx/ops/leaves.h"

namespace rlx::host {

namespace {

// Values that an output or an update depends on.
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

// The rows of one op.
std::span<const KernelRow> rows_of(const KernelTable& table, const OpDef& op) {
  const auto range = std::equal_range(table.rows.begin(), table.rows.end(), KernelRow{&op, nullptr},
                                      [](const KernelRow& a, const KernelRow& b) { return a.op->name < b.op->name; });
  return {range.first, range.second};
}

class Lowering {
 public:
  Lowering(const Graph& symbolic, const Graph& bound, std::span<const KernelTable> tables)
      : symbolic_(symbolic), bound_(bound), tables_(tables), used_(used_values(bound)) {
    program_.manifest = manifest_of(symbolic);
    program_.state_values.assign(program_.manifest.states.size(), -1);
  }

  Program run() {
    for (size_t i = 0; i < bound_.nodes().size(); ++i) lower_node(bound_.nodes()[i], symbolic_.nodes()[i]);
    for (const Output& o : bound_.outputs()) program_.outputs.push_back(value_.at(o.value));
    for (const StateUpdate& u : bound_.updates()) program_.updates.push_back({value_.at(u.state), value_.at(u.value)});
    program_.problem.outputs = program_.outputs;
    program_.problem.updates = program_.updates;
    pin_outputs();
    return std::move(program_);
  }

 private:
  int32_t add_value(const Result& bound, const Result& symbolic, Source source, plan::Region region) {
    const auto index = static_cast<int32_t>(program_.values.size());
    program_.values.push_back({.type = bound.type, .symbolic = symbolic.type, .source = source});
    program_.problem.values.push_back({.size_bytes = bound.type.size_bytes(), .region = region});
    value_[bound.id] = index;
    return index;
  }

  int32_t find_port(const std::vector<Port>& ports, const Node& leaf) const {
    const std::string& name = leaf.attrs.as<ops::LeafAttrs>().name;
    for (size_t i = 0; i < ports.size(); ++i)
      if (ports[i].name == name) return static_cast<int32_t>(i);
    RLX_ASSERT(false && "a leaf is missing in the manifest");
    return -1;
  }

  bool lower_leaf(const Node& node, const Node& symbolic) {
    const auto add = [&](Source source, plan::Region region) {
      return static_cast<size_t>(add_value(node.results[0], symbolic.results[0], source, region));
    };
    const auto external = plan::Region::kExternal, persistent = plan::Region::kPersistent;
    if (node.op == &ops::input) {
      program_.values[add(Source::kInput, external)].index = find_port(program_.manifest.inputs, node);
    } else if (node.op == &ops::param) {
      program_.values[add(Source::kParam, external)].index = find_port(program_.manifest.params, node);
    } else if (node.op == &ops::state) {
      const size_t v = add(Source::kState, persistent);
      program_.values[v].index = find_port(program_.manifest.states, node);
      program_.state_values[static_cast<size_t>(program_.values[v].index)] = static_cast<int32_t>(v);
    } else if (node.op == &ops::constant) {
      program_.values[add(Source::kConstant, external)].constant = node.attrs.as<ops::ConstantAttrs>().value;
    } else if (node.op == &ops::dim_value) {
      program_.values[add(Source::kDimValue, persistent)].dim = symbolic.attrs.as<ops::DimValueAttrs>().dim;
    } else {
      return false;
    }
    return true;
  }

  // A value inside its operand's bytes needs no step.
  bool lower_view(const Node& node, const Node& symbolic, const std::vector<TensorType>& types) {
    if (node.op->view == nullptr) return false;
    SymbolTable symbols = bound_.symbols();
    const auto view = node.op->view(InferCall(*node.op, types, node.attrs, symbols));
    if (!view) return false;
    const int32_t source = value_.at(node.inputs[0]);
    const int32_t v = add_value(node.results[0], symbolic.results[0], Source::kStep,
                                program_.problem.values[static_cast<size_t>(source)].region);
    plan::Value& planned = program_.problem.values[static_cast<size_t>(v)];
    planned.view_of = source;
    planned.view_offset_bytes = checked_mul(view->offset_elems, static_cast<int64_t>(size_of(types[0].dtype)));
    program_.views.push_back({&node - bound_.nodes().data(), view->offset_elems});
    return true;
  }

  void lower_node(const Node& node, const Node& symbolic) {
    bool needed = node.op == &ops::input || node.op == &ops::state;  // part of the interface even when unused
    bool all_empty = true;
    for (const Result& r : node.results) {
      needed |= used_.contains(r.id);
      all_empty &= r.type.shape.num_elements() == 0;
    }
    if (!needed || lower_leaf(node, symbolic)) return;
    std::vector<TensorType> types;
    for (const ValueId id : node.inputs) types.push_back(bound_.type(id));
    if (lower_view(node, symbolic, types)) return;

    ProgramStep step{.op = node.op,
                     .attrs = node.attrs,
                     .node = bound_.label(node.results[0].id),
                     .graph_node = &node - bound_.nodes().data()};
    plan::Step planned;
    for (const ValueId id : node.inputs) step.inputs.push_back(value_.at(id));
    for (size_t r = 0; r < node.results.size(); ++r) {
      step.results.push_back(node.results[r].type);
      if (!used_.contains(node.results[r].id)) {
        step.outputs.push_back(-1);
        continue;
      }
      step.outputs.push_back(add_value(node.results[r], symbolic.results[r], Source::kStep, plan::Region::kActivation));
    }
    if (all_empty) return;  // nothing to compute
    find_kernel(node, types, step);
    planned.reads = step.inputs;
    for (const int32_t v : step.outputs)
      if (v >= 0) planned.writes.push_back(v);
    add_sharing(*node.op, step, planned);
    program_.steps.push_back(std::move(step));
    program_.problem.steps.push_back(std::move(planned));
  }

  void find_kernel(const Node& node, const std::vector<TensorType>& types, ProgramStep& step) const {
    for (const KernelTable& table : tables_)
      for (const KernelRow& row : rows_of(table, *node.op))
        if (row.supports == nullptr || row.supports(node.attrs, types)) {
          step.kernel = row.kernel;
          step.backend = table.backend;
          return;
        }
    fail(ErrorKind::kUnsupported, str("No backend has a kernel for op '", node.op->name, "' (node ", step.node, ")."));
  }

  // Which results may be computed in an operand's bytes.
  void add_sharing(const OpDef& op, const ProgramStep& step, plan::Step& planned) const {
    const auto try_share = [&](int32_t written, int32_t read) {
      const TensorType &w = program_.values[static_cast<size_t>(written)].type,
                       &r = program_.values[static_cast<size_t>(read)].type;
      if (w.shape.num_elements() == r.shape.num_elements() && size_of(w.dtype) == size_of(r.dtype))
        planned.may_share.emplace_back(written, read);
    };
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (i < 32 && (op.traits.in_place >> i & 1) && step.outputs[0] >= 0) try_share(step.outputs[0], step.inputs[i]);
    const int from = op.traits.state_operand, to = op.traits.state_result;
    if (from >= 0 && to >= 0 && from < static_cast<int>(step.inputs.size()) &&
        to < static_cast<int>(step.outputs.size()) && step.outputs[static_cast<size_t>(to)] >= 0)
      try_share(step.outputs[static_cast<size_t>(to)], step.inputs[static_cast<size_t>(from)]);
  }

  // Outputs and new states keep their bytes until the next run.
  void pin_outputs() {
    auto& values = program_.problem.values;
    const auto pin = [&](int32_t v) {
      plan::Value& root = values[static_cast<size_t>(plan::root_of(program_.problem, v).value)];
      if (root.region == plan::Region::kActivation) root.region = plan::Region::kPersistent;
    };
    for (const int32_t v : program_.outputs) pin(v);
    for (const plan::Update& u : program_.updates) pin(u.value);
    for (size_t v = 0; v < values.size(); ++v)
      values[v].region =
          values[static_cast<size_t>(plan::root_of(program_.problem, static_cast<int32_t>(v)).value)].region;
  }

  const Graph& symbolic_;
  const Graph& bound_;
  std::span<const KernelTable> tables_;
  std::unordered_set<ValueId> used_;
  std::unordered_map<ValueId, int32_t> value_;
  Program program_;
};

}  // namespace

Program lower(const Graph& symbolic, const DimBinding& binding, std::span<const KernelTable> tables) {
  // A fused op that no table can run is run as its definition. Decomposed before binding, so that both graphs
  // correspond.
  Graph primitive = decompose(symbolic, [&](const OpDef& op) {
    return std::none_of(tables.begin(), tables.end(), [&](const KernelTable& t) { return !rows_of(t, op).empty(); });
  });
  const Graph bound = bind(primitive, binding);
  std::string unbound;
  for (const uint32_t id : bound.dynamic_symbols()) {
    const std::string* name = bound.symbols().find_name(id);
    unbound += str(unbound.empty() ? "" : ", ", "?", id, name ? str(" '", *name, "'") : std::string());
  }
  require(unbound.empty(), "Symbols (", unbound, ") have no size; pass inputs of known sizes or an explicit binding.");
  Program program = Lowering(primitive, bound, tables).run();
  program.binding = primitive.symbols().complete(binding);
  program.symbolic = std::move(primitive);
  return program;
}

}  // namespace rlx::host
