#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <unordered_map>

#include "rlx/log.h"
#include "rlx/ops/leaves.h"
#include "runtime/device_program.h"
#include "runtime/inspect.h"
#include "runtime/resized.h"
#include "runtime/trace_file.h"

namespace rlx {

namespace {

// `known`: where each name stands in `params`.
void collect_params(const Graph& graph, std::vector<Port>& params, std::unordered_map<std::string, size_t>& known) {
  for (const Node& node : graph.nodes()) {
    if (node.op == &ops::param) {
      const std::string& name = node.attrs.as<ops::LeafAttrs>().name;
      const auto [it, is_new] = known.emplace(name, params.size());
      if (is_new)
        params.push_back({name, node.results[0].type});
      else
        require(params[it->second].type == node.results[0].type, "Param '", name, "' is ", params[it->second].type,
                " in one graph and ", node.results[0].type, " in a region.");
    }
    for (const GraphPtr& region : node.attrs.graphs()) collect_params(*region, params, known);
  }
}

size_t find_port(const std::vector<Port>& ports, std::string_view name, std::string_view kind) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name == name) return i;
  std::string known;
  for (const Port& p : ports) known += str(known.empty() ? "" : ", ", "'", p.name, "'");
  fail(ErrorKind::kInvalid,
       str("There is no ", kind, " '", name, "'",
           known.empty() ? std::string("; the graph has none.") : str("; there are: ", known, ".")));
}

// Same dtype, and sizes that agree where they are known.
void check_type(const Tensor& value, const TensorType& type, std::string_view kind, std::string_view name) {
  bool ok = value.dtype() == type.dtype && value.rank() == type.rank();
  for (int64_t i = 0; ok && i < type.rank(); ++i)
    ok = !type.dim(i).is_static() || type.dim(i).is(value.sizes()[static_cast<size_t>(i)]);
  require(ok, kind, " '", name, "' is ", value.type(), ", not ", type, ".");
}

// A static graph whose bucket axis is axis 0 of the inputs with `upper` rows: that size as a symbol. nullopt when the
// graph cannot be inferred with it.
std::optional<Graph> with_bucket_symbol(const Graph& graph, uint32_t symbol, int64_t upper) {
  try {
    Graph out = graph.empty_revision();
    for (const Node& node : graph.nodes()) {
      Node copy = node;
      if (node.op == &ops::input && node.results[0].type.rank() > 0 && node.results[0].type.dim(0).is(upper)) {
        copy.results[0].type.shape[0] = Dim::symbol(symbol);
      } else if (!node.op->traits.leaf) {
        std::vector<TensorType> inputs;
        for (const ValueId id : node.inputs) inputs.push_back(out.type(id));
        const Types types = infer_types(*node.op, inputs, node.attrs, out.symbols());
        for (size_t r = 0; r < types.size(); ++r) copy.results[r].type = types[r];
      }
      out.append(std::move(copy));
    }
    out.set_outputs(graph.outputs());
    out.set_updates(graph.updates());
    if (!find_faults(out).empty()) return std::nullopt;
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr uint32_t kStaticBucket = 15;  // reserved; no graph uses it by itself

}  // namespace

Manifest manifest_of(const Graph& graph) {
  Manifest m;
  for (const Node& node : graph.nodes()) {
    if (node.op == &ops::input) m.inputs.push_back({node.attrs.as<ops::LeafAttrs>().name, node.results[0].type});
    if (node.op == &ops::state) m.states.push_back({node.attrs.as<ops::LeafAttrs>().name, node.results[0].type});
  }
  std::unordered_map<std::string, size_t> known;
  collect_params(graph, m.params, known);
  for (const Output& o : graph.outputs()) m.outputs.push_back({o.name, graph.type(o.value)});
  return m;
}

struct Executable::Impl {
  std::shared_ptr<const Graph> graph;  // as the user made it
  std::shared_ptr<const OptimizedGraph> optimized;
  CompileOptions options;
  const Backend* backend = nullptr;
  Manifest manifest;
  bool deferred = false;

  std::vector<std::optional<Tensor>> params, handles, pending_states;
  // The same for executables whose programs have their weights on the device in common. Goes after the programs.
  std::shared_ptr<const bool> weights = std::make_shared<bool>();
  std::vector<std::pair<size_t, size_t>> feeds;  // output, input

  struct Compiled {
    DimBinding binding;
    std::unique_ptr<DeviceProgram> program;
    std::vector<std::vector<int64_t>> input_sizes;  // bound
  };
  std::vector<Compiled> kept;  // for other sizes, the one used last first

  // The one in use.
  std::optional<DimBinding> binding;
  std::unique_ptr<DeviceProgram> program;
  std::vector<std::vector<int64_t>> input_sizes;  // bound
  std::vector<bool> fed;                          // the input has what a feed left in the program after its last run
  std::vector<bool> handle_set;                   // or its handle, which the program has already
  std::vector<Tensor> results;
  // Kept, so that run_slots allocates nothing.
  std::vector<const Tensor*> slots;
  std::vector<bool> wanted_slots;

  struct Extent {
    int64_t actual, upper;
    bool operator==(const Extent&) const = default;
  };
  std::optional<Extent> extent;
  bool extent_honoured = true;
  bool extent_stale = false;  // it is for sizes that the program in use does not have
  RunStats stats;
  std::atomic<bool> busy = false;
  bool is_probe = false;               // its values are looked at by who made it
  const int64_t track = next_track();  // in trace files

  static int64_t next_track() {
    static std::atomic<int64_t> next = 0;
    return ++next;
  }

  // One thread at a time.
  class Guard {
   public:
    explicit Guard(Impl& impl) : impl_(impl) {
      require(!impl_.busy.exchange(true, std::memory_order_acquire),
              "The executable is used by two threads at once; clone() it for the second.");
    }
    ~Guard() { impl_.busy.store(false, std::memory_order_release); }

   private:
    Impl& impl_;
  };

  void set_graph(Graph g) {
    graph = std::make_shared<const Graph>(std::move(g));
    manifest = manifest_of(*graph);
    optimized = std::make_shared<const OptimizedGraph>(optimize_for(*backend, *graph, options));
    if (options.fusion_report) log(LogLevel::kReport, fusion_text(optimized->report));
  }

  uint32_t bucket_symbol() const {
    if (options.bucket_symbol) return *options.bucket_symbol;
    std::vector<uint32_t> free;
    for (const uint32_t id : graph->dynamic_symbols())
      if (!graph->symbols().derived().contains(id)) free.push_back(id);
    require(free.size() == 1, "An active extent needs a bucket symbol: the graph has ", free.size(),
            " free symbols; set CompileOptions::bucket_symbol.");
    return free[0];
  }

  // The program for these sizes becomes the one in use: a kept one, or a new one. `origin`: whose weights the first one
  // shares.
  void use_program_for(const DimBinding& sizes, const Sibling& origin = {}) {
    if (program) pull_fed_handles();
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const Compiled& k) { return k.binding == sizes; });
    Compiled next;
    if (found != kept.end()) {
      next = std::move(*found);
      kept.erase(found);
    } else {
      next = compile_program(sizes, program ? Sibling{program.get()} : origin);
    }
    take_states(next);
    if (program) {  // the one used last is first
      kept.insert(kept.begin(), Compiled{*binding, std::move(program), std::move(input_sizes)});
      while (static_cast<int>(kept.size()) >= std::max(options.kept_programs, 1)) kept.pop_back();
    }
    program = std::move(next.program);
    binding = next.binding;
    input_sizes = std::move(next.input_sizes);
    fed.assign(manifest.inputs.size(), false);
    handle_set.assign(manifest.inputs.size(), false);
    apply_extent();
  }

  Compiled compile_program(const DimBinding& sizes, const Sibling& sibling) {
    progress("planning the program", -1);
    Compiled next{.binding = sizes};
    if (options.debug.keeps_values()) {  // every value is an output, behind those that were asked for
      const Graph watched = with_watched_outputs(optimized->graph);
      Manifest all = manifest;
      all.outputs = manifest_of(watched).outputs;
      next.program = backend->compile(watched, all, sizes, options, sibling);
    } else {
      next.program = backend->compile(optimized->graph, manifest, sizes, options, sibling);
    }
    if (options.verbose)
      log(LogLevel::kReport, compile_text(optimized->report, next.program->plan(), std::string(backend->name)));
    if (options.dispatch_report) log(LogLevel::kReport, dispatch_text(optimized->report, next.program->plan()));
    const DimBinding complete = graph->symbols().complete(sizes);
    for (size_t i = 0; i < params.size(); ++i)
      if (params[i]) {
        check_type(*params[i], {manifest.params[i].type.shape.bind(complete), manifest.params[i].type.dtype}, "Param",
                   manifest.params[i].name);
        if (sibling.program == nullptr) next.program->set_param(i, *params[i]);
      }
    for (const auto& [output, input] : feeds) next.program->set_feed(output, input);
    for (const Port& p : manifest.inputs) next.input_sizes.push_back(p.type.shape.bind(complete).sizes());
    ++stats.compiles;
    return next;
  }

  // States move from the program in use, or wait to be set; those whose sizes change start with zeros.
  void take_states(const Compiled& next) {
    const DimBinding complete = graph->symbols().complete(next.binding);
    for (size_t i = 0; i < pending_states.size(); ++i) {
      if (program && next.program->shares_state(i, *program)) continue;
      std::optional<Tensor> value = std::move(pending_states[i]);
      pending_states[i].reset();
      if (program) value = program->read_state(i);
      if (!value) continue;
      const TensorType type{manifest.states[i].type.shape.bind(complete), manifest.states[i].type.dtype};
      if (value->type() != type) {
        log(LogLevel::kWarning, str("State '", manifest.states[i].name, "' changes its sizes from ", value->type(),
                                    " to ", type, " and starts again with zeros."));
        value = Tensor(type.dtype, type.shape.sizes());
      }
      next.program->set_state(i, *value);
    }
  }

  // Before a weight is replaced: clones that share them on the device keep the old ones.
  void take_own_weights() {
    if (weights.use_count() == 1) return;
    weights = std::make_shared<bool>();
    if (program) compile_again(*binding);
  }

  // The graph was replaced by another form of it, or weights by others: nothing of the old program but its states is of
  // use.
  void compile_again(const DimBinding& sizes) {
    for (size_t i = 0; program && i < pending_states.size(); ++i) pending_states[i] = program->read_state(i);
    if (program) pull_fed_handles();
    program.reset();
    kept.clear();
    use_program_for(sizes);
  }

  // All sizes of the rows in use. Nullopt where so few do not go with the other sizes: a state of `upper` rows is added
  // to them.
  std::optional<DimBinding> active_sizes() const {
    const SymbolTable& symbols = graph->symbols();
    DimBinding active = *binding;
    active.set(bucket_symbol(), extent->actual);
    try {
      active = symbols.complete(active);
    } catch (const Error&) {
      return std::nullopt;
    }
    if (!symbols.broadcast_alike(symbols.complete(*binding), active)) return std::nullopt;
    return active;
  }

  void apply_extent() {
    extent_honoured = true;
    extent_stale = false;
    if (!program) return;
    if (!extent || extent->actual == extent->upper) {
      program->set_active_sizes(std::nullopt);
      return;
    }
    const uint32_t symbol = bucket_symbol();
    const auto compiled = binding->find(symbol);
    if (compiled && *compiled != extent->upper && deferred) {  // the next run may bring the right sizes
      extent_stale = true;
      program->set_active_sizes(std::nullopt);
      return;
    }
    require(compiled && *compiled == extent->upper, "The active extent's upper size (", extent->upper,
            ") is not the size of ?", symbol, " the executable is compiled for (", compiled.value_or(0), ").");
    const std::optional<DimBinding> active = active_sizes();
    extent_honoured = program->set_active_sizes(active) && active;
  }

  // A declared type with the sizes that are known by now.
  TensorType bound(const TensorType& declared) const {
    if (!binding) return declared;
    return {declared.shape.bind(graph->symbols().complete(*binding)), declared.dtype};
  }

  // Params are checked before a run, not at every step of it.
  void require_params() const {
    std::string missing;
    for (size_t i = 0; i < params.size(); ++i)
      if (!params[i])
        missing += str(missing.empty() ? "" : ", ", "'", manifest.params[i].name, "' (", manifest.params[i].type, ")");
    require(missing.empty(), "Params are not set: ", missing, ".");
  }

  void pull_fed_handles() {
    for (const auto& [output, input] : feeds)
      if (fed[input]) handles[input] = program->read_input(input);
  }

  bool is_fed(size_t input) const {
    return std::any_of(feeds.begin(), feeds.end(), [&](const auto& f) { return f.second == input; });
  }

  // Of what supplies the input: the caller, a feed after an earlier run, or a handle.
  const std::vector<int64_t>& sizes_of(size_t input, std::span<const Tensor* const> given) const {
    if (given[input]) return given[input]->sizes();
    return program && fed[input] ? input_sizes[input] : handles[input]->sizes();
  }

  // Compiles when the sizes are new; nothing is allocated when they are the ones of the last run.
  void prepare(std::span<const Tensor* const> given) {
    require_params();
    bool same = program != nullptr;
    for (size_t i = 0; i < given.size(); ++i) {
      const Tensor* t = given[i] ? given[i] : handles[i] ? &*handles[i] : nullptr;
      if (t == nullptr) continue;
      if (same && sizes_of(i, given) != input_sizes[i]) same = false;
      if (t->dtype() != manifest.inputs[i].type.dtype)
        check_type(*t, manifest.inputs[i].type, "Input", manifest.inputs[i].name);
    }
    std::string missing;
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i] && !handles[i])
        missing += str(missing.empty() ? "" : ", ", "'", manifest.inputs[i].name, "' (", manifest.inputs[i].type, ")");
    require(missing.empty(), "Inputs are not given: ", missing, ".");
    if (same) return;
    std::map<std::string, std::vector<int64_t>> sizes;
    for (size_t i = 0; i < given.size(); ++i) sizes[manifest.inputs[i].name] = sizes_of(i, given);
    if (!deferred) {  // the sizes are fixed: this throws with the input's name
      for (size_t i = 0; i < given.size(); ++i)
        check_type(given[i] ? *given[i] : *handles[i], bound(manifest.inputs[i].type), "Input",
                   manifest.inputs[i].name);
      return;
    }
    const DimBinding next = infer_binding(*graph, sizes);
    if (!binding || *binding != next) use_program_for(next);
  }

  void run(std::span<const Tensor* const> given, std::vector<StepTrace>* trace = nullptr,
           const std::vector<bool>* wanted = nullptr) {
    prepare(given);
    if (extent_stale) {
      const auto compiled = binding->find(bucket_symbol());
      fail(ErrorKind::kInvalid, str("The active extent's upper size (", extent->upper, ") is not the size of ?",
                                    bucket_symbol(), " in this run (", compiled.value_or(0), ")."));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) {
        program->set_input(i, *given[i]);
        handle_set[i] = fed[i] = false;
      } else if (!handle_set[i] && !fed[i]) {
        program->set_input(i, *handles[i]);
        handle_set[i] = true;
      }
    }
    if (options.trace_file.empty() && !options.debug.keeps_values())
      program->run(trace, wanted);
    else
      run_watched(trace);
    for (const auto& [output, input] : feeds) fed[input] = true;
    ++stats.runs;
    if (!extent_honoured) ++stats.full_extent_runs;
  }

  WatchedValue watched_value() const {
    const bool is_cut = extent && extent->actual != extent->upper && extent_honoured && !extent_stale;
    return [this, active = is_cut ? active_sizes() : std::nullopt,
            ids = watched_values(optimized->graph)](size_t i) -> Tensor {
      const Tensor& all = program->output(manifest.outputs.size() + i);
      return active ? resized(all, optimized->graph.type(ids[i]).shape.bind(*active).sizes()) : all;
    };
  }

  void run_watched(std::vector<StepTrace>* trace) {
    std::vector<StepTrace> own;
    if (trace == nullptr) trace = &own;
    const size_t before = trace->size();
    const auto now_ns = [] {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    };
    const int64_t begin_ns = now_ns();
    program->run(options.trace_file.empty() && trace == &own ? nullptr : trace, nullptr);
    if (!options.trace_file.empty())
      append_trace(options.trace_file, track, options.device, begin_ns, now_ns(), std::span(*trace).subspan(before));
    if (!options.debug.keeps_values()) return;
    const WatchedValue value = watched_value();
    if (options.debug.dump_nodes) log(LogLevel::kReport, nodes_text(optimized->graph, value, options.debug));
    if (!options.debug.nan_trace || is_probe) return;
    if (const std::string text = nan_text(optimized->graph, value); !text.empty()) log(LogLevel::kReport, text);
  }

  // An executable of its own, with the same weights and copies of states and handles.
  std::unique_ptr<Impl> copy(const CompileOptions& with) {
    auto out = std::make_unique<Impl>();
    out->graph = graph;
    out->optimized = optimized;
    out->options = with;
    out->backend = backend;
    out->manifest = manifest;
    out->deferred = deferred;
    out->params = params;  // the bytes are shared
    out->feeds = feeds;
    out->extent = extent;
    if (program) pull_fed_handles();
    for (const auto& h : handles) out->handles.push_back(h ? std::optional(h->clone()) : std::nullopt);
    out->pending_states = pending_states;
    if (program) {
      for (size_t i = 0; i < out->pending_states.size(); ++i) out->pending_states[i] = program->read_state(i);
      const bool shares = !with.debug.keeps_values() && !program->is_lost();
      if (shares) out->weights = weights;
      out->use_program_for(*binding, {shares ? program.get() : nullptr, false});
    }
    return out;
  }
};

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

Executable compile(Graph graph, const CompileOptions& options) {
  verify(graph);
  auto impl = std::make_unique<Executable::Impl>();
  impl->options = with_device(options);
  impl->backend = &choose_backend(impl->options);
  impl->set_graph(std::move(graph));
  impl->params.resize(impl->manifest.params.size());
  impl->handles.resize(impl->manifest.inputs.size());
  impl->pending_states.resize(impl->manifest.states.size());
  impl->deferred = !impl->graph->dynamic_symbols().empty() && options.dims.empty();
  if (!impl->deferred) impl->use_program_for(options.dims);
  return Executable(std::move(impl));
}

const std::string& Executable::device() const { return impl_->options.device; }
std::vector<Port> Executable::inputs() const { return impl_->manifest.inputs; }
std::vector<Port> Executable::outputs() const { return impl_->manifest.outputs; }
std::vector<Port> Executable::params() const { return impl_->manifest.params; }
std::vector<Port> Executable::states() const { return impl_->manifest.states; }

void Executable::set_param(std::string_view name, Tensor value) {
  const Impl::Guard guard(*impl_);
  const size_t i = find_port(impl_->manifest.params, name, "param");
  check_type(value, impl_->bound(impl_->manifest.params[i].type), "Param", name);
  impl_->take_own_weights();
  if (impl_->program) impl_->program->set_param(i, value);
  for (const Impl::Compiled& k : impl_->kept) k.program->set_param(i, value);
  impl_->params[i] = std::move(value);
}

void Executable::set_param_bytes(std::string_view name, std::span<const std::byte> bytes) {
  const TensorType& type = impl_->manifest.params[find_port(impl_->manifest.params, name, "param")].type;
  require(static_cast<int64_t>(bytes.size()) == type.size_bytes(), "Param '", name, "' (", type, ") has ",
          type.size_bytes(), " bytes, ", bytes.size(), " are given.");
  set_param(name, Tensor::borrow(type.dtype, type.shape.sizes(), bytes).clone());
}

NamedTensors Executable::run(const NamedTensors& inputs, const RunOptions& options) {
  const Impl::Guard guard(*impl_);
  std::vector<const Tensor*> given(impl_->manifest.inputs.size(), nullptr);
  for (const auto& [name, tensor] : inputs) given[find_port(impl_->manifest.inputs, name, "input")] = &tensor;
  std::vector<bool> wanted(impl_->manifest.outputs.size(), options.outputs.empty());
  for (const std::string& name : options.outputs) wanted[find_port(impl_->manifest.outputs, name, "output")] = true;
  impl_->run(given, options.trace, &wanted);
  NamedTensors out;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) out[impl_->manifest.outputs[i].name] = impl_->program->output(i).clone();
  return out;
}

std::span<const Tensor> Executable::run_slots(std::span<const Tensor> inputs, std::span<const size_t> outputs) {
  const Impl::Guard guard(*impl_);
  require(inputs.size() == impl_->manifest.inputs.size(), "The graph has ", impl_->manifest.inputs.size(), " inputs, ",
          inputs.size(), " are given.");
  std::vector<const Tensor*>& given = impl_->slots;
  given.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) given[i] = &inputs[i];
  const size_t all = impl_->manifest.outputs.size();
  impl_->wanted_slots.assign(all, outputs.empty());
  for (const size_t i : outputs) {
    require(i < all, "Output (", i, ") is out of range: the graph has ", all, " outputs.");
    impl_->wanted_slots[i] = true;
  }
  impl_->run(given, nullptr, &impl_->wanted_slots);
  impl_->results.resize(outputs.empty() ? all : outputs.size());
  for (size_t i = 0; i < impl_->results.size(); ++i)
    impl_->results[i] = impl_->program->output(outputs.empty() ? i : outputs[i]);
  return impl_->results;
}

Tensor Executable::read_state(std::string_view name) const {
  const Impl::Guard guard(*impl_);
  const size_t i = find_port(impl_->manifest.states, name, "state");
  if (impl_->program) return impl_->program->read_state(i);
  if (impl_->pending_states[i]) return *impl_->pending_states[i];
  const TensorType& type = impl_->manifest.states[i].type;
  require(type.shape.is_static(), "State '", name, "' (", type, ") has no size before the first run.");
  return Tensor(type.dtype, type.shape.sizes());
}

void Executable::set_state(std::string_view name, const Tensor& value) {
  const Impl::Guard guard(*impl_);
  const size_t i = find_port(impl_->manifest.states, name, "state");
  check_type(value, impl_->bound(impl_->manifest.states[i].type), "State", name);
  if (impl_->program)
    impl_->program->set_state(i, value);
  else
    impl_->pending_states[i] = value.clone();
}

void Executable::reset_states() {
  const Impl::Guard guard(*impl_);
  for (size_t i = 0; i < impl_->manifest.states.size(); ++i) {
    impl_->pending_states[i].reset();
    if (!impl_->program) continue;
    const Tensor old = impl_->program->read_state(i);
    impl_->program->set_state(i, Tensor(old.dtype(), old.sizes()));
  }
}

void Executable::bind_handle(std::string_view input, Tensor value) {
  const Impl::Guard guard(*impl_);
  const size_t i = find_port(impl_->manifest.inputs, input, "input");
  check_type(value, impl_->manifest.inputs[i].type, "Input", input);
  impl_->handles[i] = std::move(value);
  if (impl_->program) impl_->fed[i] = impl_->handle_set[i] = false;
}

void Executable::feed(std::string_view output, std::string_view input) {
  const Impl::Guard guard(*impl_);
  const size_t o = find_port(impl_->manifest.outputs, output, "output");
  const size_t i = find_port(impl_->manifest.inputs, input, "input");
  require(impl_->manifest.outputs[o].type == impl_->manifest.inputs[i].type, "Output '", output, "' (",
          impl_->manifest.outputs[o].type, ") cannot feed input '", input, "' (", impl_->manifest.inputs[i].type,
          "): the types differ.");
  require(!impl_->is_fed(i), "Input '", input, "' is fed already.");
  impl_->feeds.emplace_back(o, i);
  if (impl_->program) impl_->program->set_feed(o, i);
  for (const Impl::Compiled& k : impl_->kept) k.program->set_feed(o, i);
}

bool Executable::has_handle(std::string_view input) const {
  return impl_->handles[find_port(impl_->manifest.inputs, input, "input")].has_value();
}

Tensor Executable::read_handle(std::string_view input) const {
  const Impl::Guard guard(*impl_);
  const size_t i = find_port(impl_->manifest.inputs, input, "input");
  if (impl_->program && impl_->fed[i]) return impl_->program->read_input(i);
  require(impl_->handles[i].has_value(), "Input '", input, "' has no handle.");
  return impl_->handles[i]->clone();
}

void Executable::set_active_extent(int64_t actual, int64_t upper) {
  const Impl::Guard guard(*impl_);
  require(upper >= 1 && actual >= 0 && actual <= upper, "Active extent (", actual, " of ", upper, ") is out of range.");
  const Impl::Extent extent{actual, upper};
  if (impl_->extent == extent && !impl_->extent_stale) return;  // as at every step of a decoder
  if (impl_->graph->dynamic_symbols().empty() && actual != upper) {
    // A static graph: its bucket axis is axis 0 of the inputs with `upper` rows. Made a symbol once; the sizes stay the
    // same.
    if (auto symbolic = with_bucket_symbol(*impl_->graph, kStaticBucket, upper);
        symbolic && !symbolic->dynamic_symbols().empty()) {
      impl_->set_graph(std::move(*symbolic));
      impl_->compile_again({{kStaticBucket, upper}});
    } else {
      impl_->extent_honoured = false;
      log(LogLevel::kInfo,
          str("The active extent is not used: the graph's types do not follow ", upper, " rows of its inputs."));
      return;
    }
  }
  const auto before = std::exchange(impl_->extent, extent);
  try {
    impl_->apply_extent();
  } catch (...) {
    impl_->extent = before;
    impl_->apply_extent();
    throw;
  }
}

Executable Executable::clone() const {
  const Impl::Guard guard(*impl_);
  return Executable(impl_->copy(impl_->options));
}

std::optional<NonFiniteNode> Executable::debug_first_nan_node(const NamedTensors& inputs) const {
  std::unique_ptr<Impl> probe;
  {
    const Impl::Guard guard(*impl_);
    CompileOptions options = impl_->options;
    options.debug = {.nan_trace = true};
    options.trace_file.clear();
    probe = impl_->copy(options);
    probe->is_probe = true;
  }
  std::vector<const Tensor*> given(probe->manifest.inputs.size(), nullptr);
  for (const auto& [name, tensor] : inputs) given[find_port(probe->manifest.inputs, name, "input")] = &tensor;
  probe->run(given);
  return first_non_finite(probe->optimized->graph, probe->watched_value());
}

PlanInfo Executable::plan() const {
  require(impl_->program != nullptr, "The executable is compiled at its first run; there is no plan yet.");
  return impl_->program->plan();
}

const Graph& Executable::graph() const { return *impl_->graph; }
const Graph& Executable::optimized_graph() const { return impl_->optimized->graph; }

const CompileReport& Executable::report() const { return impl_->optimized->report; }

RunStats Executable::stats() const {
  RunStats stats = impl_->stats;
  if (impl_->program) stats.device = impl_->program->device_stats();
  return stats;
}

}  // namespace rlx
