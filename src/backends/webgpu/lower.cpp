#include "backends/webgpu/lower.h"

#include <algorithm>
#include <unordered_set>

#include "backends/cpu/table.h"
#include "backends/host/program.h"
#include "backends/reference/table.h"
#include "backends/webgpu/memory.h"
#include "backends/webgpu/node_places.h"
#include "backends/webgpu/program_builder.h"
#include "backends/webgpu/split_weights.h"
#include "backends/webgpu/step_names.h"
#include "rlx/ops/leaves.h"

namespace rlx::webgpu {

const LoweringRow* find_lowering(const LowerSignature& signature, const Device& device) {
  for (const auto types : {signature.inputs, signature.outputs})
    for (const TensorType& t : types)
      if (t.dtype == DType::F64) return nullptr;
  const auto rows = lowering_table();
  const auto range =
      std::equal_range(rows.begin(), rows.end(), LoweringRow{&signature.op, nullptr},
                       [](const LoweringRow& a, const LoweringRow& b) { return a.op->name < b.op->name; });
  for (auto row = range.first; row != range.second; ++row)
    if (row->supports == nullptr || row->supports(signature, device)) return &*row;
  return nullptr;
}

namespace {

// The symbol whose rows an active extent counts: the one the options name, or the only one there is.
std::optional<uint32_t> find_bucket(const Graph& graph, const CompileOptions& options) {
  if (options.bucket_symbol) return options.bucket_symbol;
  std::optional<uint32_t> found;
  for (const uint32_t id : graph.dynamic_symbols()) {
    if (graph.symbols().derived().contains(id)) continue;
    if (found) return std::nullopt;
    found = id;
  }
  return found;
}

// With f32_uniform an index is an f32, which must be exact.
void check_uniform_sizes(const Graph& bound) {
  for (const Node& node : bound.nodes())
    for (const Result& r : node.results)
      for (const Dim& d : r.type.shape)
        if (d.value() > int64_t{1} << 24)
          fail(ErrorKind::kUnsupported, str("A size (", d, ") of ", bound.label(r.id),
                                            " is more than 2^24, which indices may be with f32_uniform."));
}

class Lowering {
 public:
  Lowering(const Graph& symbolic, const Graph& bound, const Manifest& manifest, const DimBinding& binding,
           const Device& device, const CompileOptions& options, bool nested,
           const std::unordered_set<size_t>& too_large)
      : symbolic_(symbolic),
        bound_(bound),
        binding_(binding),
        device_(device),
        options_(options),
        nested_(nested),
        build_(symbolic, bound, manifest, device, options),
        program_(build_.program()),
        places_(bound, build_.used(), device, options, nested, too_large) {
    program_.bucket = find_bucket(symbolic, options);
    const auto index = [](const std::vector<Port>& ports, PortIndex& map) {
      for (size_t i = 0; i < ports.size(); ++i) map[ports[i].name] = static_cast<int32_t>(i);
    };
    index(manifest.inputs, inputs_);
    index(manifest.params, params_);
    index(manifest.states, states_);
  }

  Program run() {
    for (size_t i = 0; i < bound_.nodes().size(); ++i) lower_node(i);
    return build_.finish(nested_);
  }

 private:
  using PortIndex = std::unordered_map<std::string, int32_t>;

  Storage storage_of(ValueId id, DType dtype, Source source) {
    if (!places_.needs_device_bytes(id)) return Storage::kHost;
    const Storage computed = computed_storage(dtype, device_, options_);
    const bool small = size_of(dtype) < 4 && dtype != DType::F16;
    const bool given =
        (source == Source::kInput && !nested_) || source == Source::kParam || source == Source::kConstant;
    if (small && given && !(dtype == DType::BF16 && (source == Source::kInput || options_.webgpu.f32_uniform)))
      return Storage::kPacked;
    return computed;
  }

  // The params that a node depends on; nullopt: on other values too.
  std::optional<std::vector<int32_t>> params_of(const Node& node) const {
    std::vector<int32_t> params;
    for (const ValueId id : node.inputs) {
      const auto* own = build_.static_params(build_.value_of(id));
      if (own == nullptr) return std::nullopt;
      params.insert(params.end(), own->begin(), own->end());
    }
    if (!node.attrs.graphs().empty())
      for (const auto& [name, index] : params_) params.push_back(index);
    std::sort(params.begin(), params.end());
    params.erase(std::unique(params.begin(), params.end()), params.end());
    return params;
  }

  int32_t add_result(size_t r, Source source) {
    const Result& result = build_.node().results[r];
    const int32_t v = build_.add_result(r, storage_of(result.id, result.type.dtype, source), source);
    program_.values[static_cast<size_t>(v)].bounds_loops = places_.bounds_loops(result.id);
    return v;
  }

  static int32_t find_port(const PortIndex& ports, const Node& leaf) {
    const auto it = ports.find(leaf.attrs.as<ops::LeafAttrs>().name);
    RLX_ASSERT(it != ports.end() && "a leaf is missing in the manifest");
    return it->second;
  }

  void lower_leaf(const Node& node, const Node& symbolic) {
    const auto add = [&](Source source) -> ProgramValue& {
      return program_.values[static_cast<size_t>(add_result(0, source))];
    };
    const auto v = static_cast<int32_t>(program_.values.size());
    if (node.op == &ops::input) {
      ProgramValue& value = add(Source::kInput);
      value.index = find_port(inputs_, node);
      value.label = str("input '", program_.manifest.inputs[static_cast<size_t>(value.index)].name, "'");
    } else if (node.op == &ops::param) {
      ProgramValue& value = add(Source::kParam);
      value.index = find_port(params_, node);
      value.label = str("param '", program_.manifest.params[static_cast<size_t>(value.index)].name, "'");
      build_.make_static(v, {value.index});
    } else if (node.op == &ops::state) {
      ProgramValue& value = add(Source::kState);
      value.index = find_port(states_, node);
      value.label = str("state '", program_.manifest.states[static_cast<size_t>(value.index)].name, "'");
      program_.state_values[static_cast<size_t>(value.index)] = v;
    } else if (node.op == &ops::constant) {
      add(Source::kConstant).constant = node.attrs.as<ops::ConstantAttrs>().value;
      build_.make_static(v, {});
    } else if (node.op == &ops::dim_value) {
      add(Source::kDimValue).dim = symbolic.attrs.as<ops::DimValueAttrs>().dim;
    } else {
      fail(ErrorKind::kInternal, str("Leaf '", node.op->name, "' is not known."));
    }
  }

  // A value inside its operand's bytes needs no step. False where the stored elements differ in size.
  bool lower_view(const Node& node, int64_t index) {
    const auto view = find_view(bound_, node);
    const int32_t operand = build_.value_of(node.inputs[0]);
    const plan::Root root = plan::root_of(program_.problem, operand);
    const ProgramValue& from = build_.value(operand);
    const DType to_dtype = node.results[0].type.dtype;
    Storage storage = from.storage;
    if (from.type.dtype != to_dtype && storage != Storage::kHost && storage != Storage::kPacked) {
      storage = computed_storage(to_dtype, device_, options_);
      // Integers as f32 have other bits than their own.
      if (storage != kernel_storage(to_dtype, device_, options_) ||
          from.storage != kernel_storage(from.type.dtype, device_, options_))
        return false;
      if (storage_element_bytes(storage, to_dtype) != static_cast<int64_t>(size_of(to_dtype)) ||
          storage_element_bytes(from.storage, from.type.dtype) != static_cast<int64_t>(size_of(from.type.dtype)))
        return false;
    }
    const int64_t own_offset = checked_mul(view->offset_elems, storage_element_bytes(from.storage, from.type.dtype));
    const int64_t host_offset = storage == Storage::kHost ? from.host_offset_bytes + own_offset : 0;
    const int32_t v = build_.add_result(0, storage, Source::kStep);
    build_.add_view(v, operand, storage == Storage::kHost ? -root.offset_bytes : own_offset);
    program_.values[static_cast<size_t>(v)].host_offset_bytes = host_offset;
    if (const auto* params = build_.static_params(root.value)) build_.make_static(v, std::vector(*params));
    program_.views.push_back({index, view->offset_elems});
    return true;
  }

  void lower_node(size_t index) {
    const Node& node = bound_.nodes()[index];
    const Node& symbolic = symbolic_.nodes()[index];
    const NodePlace place = places_.of(index);
    build_.begin_node(index);
    switch (place) {
      case NodePlace::kSkip: return;
      case NodePlace::kLeaf: lower_leaf(node, symbolic); return;
      case NodePlace::kView:
        if (lower_view(node, static_cast<int64_t>(index))) return;
        break;
      default: break;
    }
    const LoweringRow* row = place == NodePlace::kHost ? nullptr : places_.row(index);
    const auto params = params_of(node);
    build_.set_node_params(params);
    bool all_empty = true;  // of those that somebody wants
    for (size_t r = 0; r < node.results.size(); ++r) {
      if (!build_.wants(node.results[r].id)) continue;
      all_empty &= node.results[r].type.shape.num_elements() == 0;
      const int32_t v = add_result(r, params ? Source::kStatic : Source::kStep);
      if (params) build_.make_static(v, *params);
    }
    if (all_empty) return;  // nothing to compute
    const std::vector<TensorType> types = input_types(bound_, node);
    if (place == NodePlace::kLoop) {
      add_loop(node, places_.take_loop(index));
      return;
    }
    if (row == nullptr) {
      add_host_call(node, symbolic);
      return;
    }
    LowerCall call(build_, node, types, params.has_value());
    try {
      row->lower(call);
      build_.convert_written();
    } catch (Error& e) {
      e.add_context(str("lowering ", build_.label(), " (", node.op->name, ") for the GPU"));
      throw;
    }
  }

  // The node alone, as a program for the host.
  void add_host_call(const Node& node, const Node& symbolic) {
    // Sizes that are symbols stay so: an active extent cuts the host's step too.
    Graph graph = symbolic_.empty_revision();
    std::vector<ValueId> operands;
    for (size_t i = 0; i < symbolic.inputs.size(); ++i)
      operands.push_back(graph.input(str("x", i), symbolic_.type(symbolic.inputs[i])).id());
    std::vector<TensorType> results;
    for (const Result& r : symbolic.results) results.push_back(r.type);
    const Value first = graph.add_node(*symbolic.op, operands, symbolic.attrs, results);
    HostCall call;
    for (const ValueId id : node.inputs) call.inputs.push_back(build_.value_of(id));
    for (size_t r = 0; r < node.results.size(); ++r) {
      if (!build_.wants(node.results[r].id)) continue;
      call.outputs.push_back(build_.value_of(node.results[r].id));
      graph.output(first.result(static_cast<int64_t>(r)), str("y", r));
    }
    const host::KernelTable tables[] = {{"cpu", cpu::kernel_table()}, {"reference", reference::kernel_table()}};
    CompileOptions options = options_;
    options.poison = false;
    const Manifest manifest = manifest_of(graph);
    call.program = host::make_program(graph, manifest, binding_, tables, options);
    for (size_t i = 0; i < manifest.params.size(); ++i)
      call.params.emplace_back(i, static_cast<size_t>(params_.at(manifest.params[i].name)));
    const PlanInfo plan = call.program->plan();
    call.kernel = plan.steps.empty() ? "cpu" : plan.steps.back().kernel;
    build_.add_host_step(std::move(call), host_step_name(*node.op, node.attrs, input_types(bound_, node)));
  }

  void add_loop(const Node& node, Loop loop) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int32_t v = build_.value_of(node.inputs[i]);
      loop.inputs.push_back(loop.kind == Loop::Kind::kIf && i == 0 ? v : build_.plain(v));  // a predicate is the host's
    }
    for (const Result& r : node.results) loop.outputs.push_back(build_.wants(r.id) ? build_.value_of(r.id) : -1);
    build_.add_host_step(std::move(loop), std::string(node.op->name));
  }

  const Graph& symbolic_;
  const Graph& bound_;
  const DimBinding& binding_;
  const Device& device_;
  const CompileOptions& options_;
  bool nested_;
  ProgramBuilder build_;
  Program& program_;  // being built
  NodePlaces places_;
  PortIndex inputs_, params_, states_;
};

// Nodes with a step that sees more of a value than a binding shows, or a value that no buffer holds. What a node's
// types do not tell: bytes that kernels read as words, what they keep beside their operands, the whole of a part.
std::unordered_set<size_t> find_too_large(const Program& program, const Limits& limits, const CompileOptions& options) {
  const plan::Options planning = plan_options_for(limits, options);
  const auto bytes = [&](int32_t v) { return program.problem.values[static_cast<size_t>(v)].size_bytes; };
  const auto has_room = [&](int32_t v) {
    return v < 0 || bytes(plan::root_of(program.problem, v).value) <= planning.page_bytes - planning.guard_bytes;
  };
  const auto is_shown = [&](int32_t v) {  // by a binding, which begins at a multiple of the alignment
    const int64_t skipped = plan::root_of(program.problem, v).offset_bytes % planning.alignment;
    return static_cast<uint64_t>(skipped + bytes(v) + 15) / 16 * 16 <= limits.max_binding_bytes;
  };
  std::unordered_set<size_t> nodes;
  for (const auto* steps : {&program.static_steps, &program.steps})
    for (const Step& step : *steps) {
      bool fits = true;
      if (const auto* d = std::get_if<Dispatch>(&step.work))
        for (const Operand& o : d->operands) fits &= is_shown(o.value) && has_room(o.value);
      if (const auto* loop = std::get_if<Loop>(&step.work))
        fits = std::all_of(loop->inputs.begin(), loop->inputs.end(), has_room) &&
               std::all_of(loop->outputs.begin(), loop->outputs.end(), has_room);
      if (!fits) nodes.insert(static_cast<size_t>(step.graph_node));
    }
  return nodes;
}

}  // namespace

Program lower(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding, const Device& device,
              const CompileOptions& options, bool nested) {
  const Limits limits = limits_for(device, options);
  const int64_t visible = visible_bytes(limits);
  const auto is_large = [&](const TensorType& t) { return is_too_large(t, device, visible); };
  // A fused op that no kernel here runs, or whose weight no binding holds, is run as its definition, whose parts may
  // have a kernel.
  Graph primitive = decompose(symbolic, [&](const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                                            std::span<const TensorType> outputs) {
    return find_lowering({op, attrs, inputs, outputs}, device) == nullptr ||
           std::any_of(inputs.begin(), inputs.end(), is_large);
  });
  primitive = split_large_weights(primitive, device, options, visible);
  const Graph bound = bind(primitive, binding);
  std::string unbound;
  for (const uint32_t id : bound.dynamic_symbols()) unbound += str(unbound.empty() ? "?" : ", ?", id);
  require(unbound.empty(), "Symbols (", unbound, ") have no size; pass inputs of known sizes or an explicit binding.");
  if (options.webgpu.f32_uniform) check_uniform_sizes(bound);
  // What turns out too large for the device the host computes, where that is of any use.
  std::unordered_set<size_t> too_large;
  const auto lowered = [&] {
    return Lowering(primitive, bound, manifest, binding, device, options, nested, too_large).run();
  };
  Program program = lowered();
  for (size_t before = 0;; before = too_large.size()) {
    too_large.merge(find_too_large(program, limits, options));
    if (too_large.size() == before) break;
    program = lowered();
  }
  program.binding = primitive.symbols().complete(binding);
  program.symbolic = std::move(primitive);
  return program;
}

}  // namespace rlx::webgpu
