#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "backends/host/memory.h"
#include "backends/host/program.h"
#include "core/aligned.h"
#include "rlx/ops/expand.h"
#include "rlx/ops/leaves.h"

namespace rlx::host {

namespace {

// A broadcast weight larger than this is not kept: it would cost more memory than time.
constexpr int64_t kLargestHoistedExpand = 1 << 20;

// The rows of one op.
std::span<const KernelRow> rows_of(const KernelTable& table, const OpDef& op) {
  const auto range = std::equal_range(table.rows.begin(), table.rows.end(), KernelRow{&op, nullptr},
                                      [](const KernelRow& a, const KernelRow& b) { return a.op->name < b.op->name; });
  return {range.first, range.second};
}

class Lowering {
 public:
  Lowering(const Graph& symbolic, const Graph& bound, const Manifest& manifest, std::span<const KernelTable> tables,
           int threads)
      : symbolic_(symbolic), bound_(bound), tables_(tables), threads_(threads), used_(used_values(bound)) {
    program_.manifest = manifest;
    program_.state_values.assign(manifest.states.size(), -1);
    const auto index = [](const std::vector<Port>& ports, PortIndex& map) {
      for (size_t i = 0; i < ports.size(); ++i) map[ports[i].name] = static_cast<int32_t>(i);
    };
    index(manifest.inputs, inputs_);
    index(manifest.params, params_);
    index(manifest.states, states_);
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
  using PortIndex = std::unordered_map<std::string, int32_t>;

  int32_t add_value(const Result& bound, const Result& symbolic, Source source, plan::Region region) {
    const auto index = static_cast<int32_t>(program_.values.size());
    const int64_t bytes = bound.type.size_bytes();
    if (bytes > memory_bytes()) require_memory(bytes, str("Value ", bound_.label(bound.id), " (", bound.type, ")"));
    program_.values.push_back({.type = bound.type, .symbolic = symbolic.type, .source = source});
    program_.problem.values.push_back({.size_bytes = bytes, .region = region});
    value_[bound.id] = index;
    return index;
  }

  static int32_t find_port(const PortIndex& ports, const Node& leaf) {
    const auto it = ports.find(leaf.attrs.as<ops::LeafAttrs>().name);
    RLX_ASSERT(it != ports.end() && "a leaf is missing in the manifest");
    return it->second;
  }

  bool lower_leaf(const Node& node, const Node& symbolic) {
    const auto add = [&](Source source, plan::Region region) {
      return static_cast<size_t>(add_value(node.results[0], symbolic.results[0], source, region));
    };
    const auto external = plan::Region::kExternal, persistent = plan::Region::kPersistent;
    if (node.op == &ops::input) {
      program_.values[add(Source::kInput, external)].index = find_port(inputs_, node);
    } else if (node.op == &ops::param) {
      const size_t v = add(Source::kParam, external);
      program_.values[v].index = find_port(params_, node);
      make_static(v, {program_.values[v].index});
    } else if (node.op == &ops::state) {
      const size_t v = add(Source::kState, persistent);
      program_.values[v].index = find_port(states_, node);
      program_.state_values[static_cast<size_t>(program_.values[v].index)] = static_cast<int32_t>(v);
    } else if (node.op == &ops::constant) {
      const size_t v = add(Source::kConstant, external);
      program_.values[v].constant = aligned(node.attrs.as<ops::ConstantAttrs>().value);
      make_static(v, {});
    } else if (node.op == &ops::dim_value) {
      program_.values[add(Source::kDimValue, persistent)].dim = symbolic.attrs.as<ops::DimValueAttrs>().dim;
    } else {
      return false;
    }
    return true;
  }

  // ---- values that depend on weights alone ----

  void make_static(size_t v, std::vector<int32_t> params) {
    static_params_.resize(program_.values.size());
    static_params_[v] = std::move(params);
  }
  // The params a static value depends on; null for any other.
  const std::vector<int32_t>* find_static(int32_t v) const {
    const auto i = static_cast<size_t>(v);
    return i < static_params_.size() && static_params_[i] ? &*static_params_[i] : nullptr;
  }
  uint64_t static_mask(const std::vector<int32_t>& values) const {
    uint64_t mask = 0;
    for (size_t i = 0; i < values.size() && i < 64; ++i) mask |= uint64_t{find_static(values[i]) != nullptr} << i;
    return mask;
  }
  // What a node of static operands depends on, regions included; nullopt when an operand changes from run to run.
  std::optional<std::vector<int32_t>> params_of(const Node& node, const std::vector<int32_t>& values) const {
    if (node.op == &ops::expand && node.results[0].type.size_bytes() > kLargestHoistedExpand) return std::nullopt;
    std::vector<int32_t> params;
    for (const int32_t v : values) {
      const auto* own = find_static(v);
      if (own == nullptr) return std::nullopt;
      params.insert(params.end(), own->begin(), own->end());
    }
    if (!node.attrs.graphs().empty())  // a region names its params itself
      for (const auto& [name, index] : params_) params.push_back(index);
    std::sort(params.begin(), params.end());
    params.erase(std::unique(params.begin(), params.end()), params.end());
    return params;
  }

  // A value inside its operand's bytes needs no step.
  bool lower_view(const Node& node, const Node& symbolic, const std::vector<TensorType>& types) {
    if (node.op->view == nullptr) return false;
    SymbolTable symbols = bound_.symbols();
    const auto view = node.op->view(InferCall(*node.op, types, node.attrs, symbols));
    if (!view) return false;
    // A view of a view lies in the same root: chains stay short.
    const plan::Root root = plan::root_of(program_.problem, value_.at(node.inputs[0]));
    const int32_t source = root.value;
    const int32_t v = add_value(node.results[0], symbolic.results[0], Source::kStep,
                                program_.problem.values[static_cast<size_t>(source)].region);
    plan::Value& planned = program_.problem.values[static_cast<size_t>(v)];
    planned.view_of = source;
    planned.view_offset_bytes =
        root.offset_bytes + checked_mul(view->offset_elems, static_cast<int64_t>(size_of(types[0].dtype)));
    if (const auto* params = find_static(source)) make_static(static_cast<size_t>(v), std::vector(*params));
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
                     .origin = node.origin,
                     .graph_node = &node - bound_.nodes().data()};
    plan::Step planned;
    for (const ValueId id : node.inputs) step.inputs.push_back(value_.at(id));
    auto params = params_of(node, step.inputs);
    const bool is_static = params.has_value();
    for (size_t r = 0; r < node.results.size(); ++r) {
      step.results.push_back(node.results[r].type);
      if (!used_.contains(node.results[r].id)) {
        step.outputs.push_back(-1);
        continue;
      }
      step.outputs.push_back(add_value(node.results[r], symbolic.results[r],
                                       is_static ? Source::kStatic : Source::kStep,
                                       is_static ? plan::Region::kExternal : plan::Region::kActivation));
      if (is_static) make_static(static_cast<size_t>(step.outputs.back()), *params);
    }
    if (all_empty) return;  // nothing to compute
    choose(types, step);
    if (is_static) {
      step.params = std::move(*params);
      program_.static_steps.push_back(std::move(step));
      return;
    }
    for (const int32_t v : step.inputs)  // nobody writes an empty value
      if (program_.problem.values[static_cast<size_t>(v)].size_bytes > 0) planned.reads.push_back(v);
    planned.scratch_bytes = step.scratch_bytes;
    for (const int32_t v : step.outputs)
      if (v >= 0) planned.writes.push_back(v);
    add_sharing(*node.op, step, planned);
    program_.steps.push_back(std::move(step));
    program_.problem.steps.push_back(std::move(planned));
  }

  void choose(const std::vector<TensorType>& types, ProgramStep& step) {
    const Signature signature{step.attrs, types, step.results, static_mask(step.inputs)};
    const auto [row, backend] = choose_kernel(tables_, *step.op, signature);
    if (row == nullptr)
      fail(ErrorKind::kUnsupported,
           str("No backend has a kernel for op '", step.op->name, "' (node ", step.node, ")."));
    step.kernel = row->kernel;
    step.kernel_name = row->name.empty() ? std::string(backend) : str(backend, "/", row->name);
    if (row->scratch) step.scratch_bytes = row->scratch(signature, threads_);
    if (row->packing) step.inputs[static_cast<size_t>(row->packing->operand)] = pack(*row->packing, signature, step);
  }

  // The packed form of a static operand, shared by all steps that want the same one.
  int32_t pack(const Packing& packing, const Signature& signature, const ProgramStep& user) {
    const int32_t source = user.inputs[static_cast<size_t>(packing.operand)];
    RLX_ASSERT(find_static(source) != nullptr);
    const int64_t bytes = packing.bytes(signature);
    const TensorType type = program_.values[static_cast<size_t>(source)].type;  // copies: the list grows below
    const TensorType symbolic = program_.values[static_cast<size_t>(source)].symbolic;
    const std::vector<int64_t> sizes = packing.sizes ? packing.sizes(signature) : type.shape.sizes();
    for (const Packed& p : packed_[source])
      if (p.packing == &packing && p.bytes == bytes && p.sizes == sizes && p.attrs == user.attrs) return p.value;
    ProgramStep step{.op = user.op,
                     .attrs = user.attrs,
                     .kernel = packing.pack,
                     .kernel_name = str(user.kernel_name, ":pack"),
                     .node = user.node,
                     .origin = user.origin,
                     .inputs = {source},
                     .params = *find_static(source),
                     .graph_node = user.graph_node,
                     .is_packing = true};
    const auto v = static_cast<int32_t>(program_.values.size());
    program_.values.push_back({.type = type, .symbolic = symbolic, .source = Source::kStatic});
    program_.problem.values.push_back({.size_bytes = bytes, .region = plan::Region::kExternal});
    make_static(static_cast<size_t>(v), std::vector(step.params));
    step.outputs = {v};
    step.results = {{Shape(sizes), type.dtype}};
    program_.static_steps.push_back(std::move(step));
    packed_[source].push_back({&packing, bytes, sizes, user.attrs, v});
    return v;
  }

  // Which results may be computed in an operand's bytes.
  void add_sharing(const OpDef& op, const ProgramStep& step, plan::Step& planned) const {
    // `operands`: those that the kernel may find overwritten. The same value may be another operand too.
    const auto try_share = [&](int32_t written, int32_t read, uint32_t operands) {
      for (size_t i = 0; i < step.inputs.size(); ++i)
        if (step.inputs[i] == read && (i >= 32 || (operands >> i & 1) == 0)) return;
      const TensorType &w = program_.values[static_cast<size_t>(written)].type,
                       &r = program_.values[static_cast<size_t>(read)].type;
      if (w.shape.num_elements() == r.shape.num_elements() && size_of(w.dtype) == size_of(r.dtype))
        planned.may_share.emplace_back(written, read);
    };
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (i < 32 && (op.traits.in_place >> i & 1) && step.outputs[0] >= 0)
        try_share(step.outputs[0], step.inputs[i], op.traits.in_place);
    const int from = op.traits.state_operand, to = op.traits.state_result;
    if (from >= 0 && to >= 0 && from < static_cast<int>(step.inputs.size()) &&
        to < static_cast<int>(step.outputs.size()) && step.outputs[static_cast<size_t>(to)] >= 0)
      try_share(step.outputs[static_cast<size_t>(to)], step.inputs[static_cast<size_t>(from)], uint32_t{1} << from);
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
  int threads_;
  std::unordered_set<ValueId> used_;
  PortIndex inputs_, params_, states_;
  std::vector<std::optional<std::vector<int32_t>>> static_params_;  // by value
  struct Packed {
    const Packing* packing;
    int64_t bytes;
    std::vector<int64_t> sizes;
    Attrs attrs;
    int32_t value;
  };
  std::unordered_map<int32_t, std::vector<Packed>> packed_;  // by the operand as it was
  std::unordered_map<ValueId, int32_t> value_;
  Program program_;
};

}  // namespace

KernelChoice choose_kernel(std::span<const KernelTable> tables, const OpDef& op, const Signature& signature) {
  for (const KernelTable& table : tables)
    for (const KernelRow& row : rows_of(table, op))
      if (row.supports == nullptr || row.supports(signature)) return {&row, table.backend};
  return {};
}

Program lower(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
              std::span<const KernelTable> tables, int threads) {
  // A fused op that no table can run is run as its definition. Decomposed before binding, so that both graphs
  // correspond.
  Graph primitive = decompose(symbolic, [&](const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                                            std::span<const TensorType> outputs) {
    return choose_kernel(tables, op, {attrs, inputs, outputs}).row == nullptr;
  });
  const Graph bound = bind(primitive, binding);
  std::string unbound;
  for (const uint32_t id : bound.dynamic_symbols()) {
    const std::string* name = bound.symbols().find_name(id);
    unbound += str(unbound.empty() ? "" : ", ", "?", id, name ? str(" '", *name, "'") : std::string());
  }
  require(unbound.empty(), "Symbols (", unbound, ") have no size; pass inputs of known sizes or an explicit binding.");
  Program program = Lowering(primitive, bound, manifest, tables, threads).run();
  program.binding = primitive.symbols().complete(binding);
  program.symbolic = std::move(primitive);
  return program;
}

}  // namespace rlx::host
