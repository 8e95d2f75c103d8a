#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>

#include "backends/host/aligned_bytes.h"
#include "backends/host/box_copy.h"
#include "backends/host/interned.h"
#include "backends/host/memory.h"
#include "backends/host/pool.h"
#include "backends/host/program.h"
#include "core/aligned.h"
#include "ir/text.h"
#include "ops/cost.h"
#include "rlx/log.h"
#include "rlx/ops/leaves.h"

namespace rlx::host {

namespace {

plan::Options plan_options(const CompileOptions& o) {
  const auto schedule = o.schedule == ScheduleOrder::kBest     ? plan::Schedule::kBest
                        : o.schedule == ScheduleOrder::kGreedy ? plan::Schedule::kGreedy
                                                               : plan::Schedule::kSource;
  return {.alignment = o.arena_alignment,
          .schedule = schedule,
          .no_reuse = o.no_reuse,
          .in_place = o.in_place,
          .verify = o.verify_plan};
}

// The plan, if the machine can hold what it asks for: activations, states, and weights computed of weights.
plan::Plan affordable(plan::Plan plan, const Program& program) {
  int64_t bytes = checked_add(plan.arena_bytes, plan.persistent_bytes);
  for (size_t v = 0; v < program.values.size(); ++v)
    if (program.values[v].source == Source::kStatic) bytes = checked_add(bytes, program.problem.values[v].size_bytes);
  require_memory(bytes, "The program");
  return plan;
}

// An operand or result of a step that runs on the first rows only, where those rows are not a prefix of the tensor's
// bytes: they are copied together before the step, or apart after it.
struct Gathered {
  int32_t value;
  std::vector<int64_t> active;
  std::vector<std::byte> bytes;
};

class CompiledRegion : public Region {
 public:
  CompiledRegion(const Graph& body, std::span<const KernelTable> tables, const CompileOptions& options)
      : graph(&body),
        alignment_(options.arena_alignment),
        manifest_(manifest_of(body)),
        program_(make_program(body, manifest_, {}, tables, options)),
        own_(manifest_.inputs.size()) {}

  void set_param(const std::string& name, const Tensor& value) {
    for (size_t i = 0; i < manifest_.params.size(); ++i)
      if (manifest_.params[i].name == name) program_->set_param(i, value);
  }

  void set_input(size_t index, const std::byte* bytes) override { program_->lend_input(index, bytes); }
  std::span<std::byte> own_input(size_t index) override {
    const int64_t size = manifest_.inputs[index].type.size_bytes();
    AlignedBytes& own = own_[index];
    if (own.data() == nullptr) own = AlignedBytes(size, alignment_);
    program_->lend_input(index, own.data());
    return {own.data(), static_cast<size_t>(size)};
  }
  void run() override { program_->run(); }
  const Tensor& output(size_t index) const override { return program_->output(index); }

  const Graph* graph;

 private:
  int64_t alignment_;
  Manifest manifest_;
  std::unique_ptr<InnerProgram> program_;
  std::vector<AlignedBytes> own_;  // by input: made when a kernel asks for them
};

// The compiled regions of one step.
class StepBodies : public BodyRunner {
 public:
  StepBodies(const ProgramStep& step, std::span<const KernelTable> tables, const CompileOptions& options) {
    for (const GraphPtr& body : step.attrs.graphs())
      if (body && find(*body) == nullptr) regions_.push_back(std::make_unique<CompiledRegion>(*body, tables, options));
  }

  void set_param(const std::string& name, const Tensor& value) {
    for (const auto& r : regions_) r->set_param(name, value);
  }

  Region& region(const Graph& body) override {
    CompiledRegion* found = find(body);
    RLX_ASSERT(found != nullptr);
    return *found;
  }

 private:
  CompiledRegion* find(const Graph& graph) const {
    for (const auto& r : regions_)
      if (r->graph == &graph) return r.get();
    return nullptr;
  }
  std::vector<std::unique_ptr<CompiledRegion>> regions_;
};

// A step ready to run: everything a Call needs, made once.
struct ReadyStep {
  const ProgramStep* step;
  Attrs attrs;
  std::vector<View> inputs, outputs;
  std::vector<std::vector<int64_t>> sizes;  // what the views' sizes point at
  std::vector<Gathered> gathered_inputs, gathered_outputs;
  std::byte* scratch = nullptr;
  BodyRunner* bodies = nullptr;
};

std::string from_text(const std::string& origin) { return origin.empty() ? "" : str(", from '", origin, "'"); }

// When a step ran, while a run is traced.
struct Mark {
  const ProgramStep* step;
  int64_t begin_ns, end_ns;
};
int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

struct EndCopy {
  int32_t from;                      // value
  int32_t to_state = -1;             // value, or …
  int32_t to_input = -1;             // … manifest index
  std::vector<std::byte> staged;     // where the source may be overwritten by another copy
  std::vector<int64_t> rows_in_use;  // of a fed input under an active extent: its sizes; empty: all
};

class HostProgram : public InnerProgram, public ParamSource {
 public:
  HostProgram(Program program, std::span<const KernelTable> tables, const CompileOptions& options,
              const HostProgram* sibling, bool shares_states)
      : program_(std::move(program)),
        options_(options),
        plan_(affordable(plan::make_plan(program_.problem, plan_options(options)), program_)),
        pool_(shared_pool(options.threads)),
        arena_(plan_.arena_bytes, options.arena_alignment),
        persistent_(plan_.persistent_bytes, options.arena_alignment),
        statics_(program_.values.size()),
        static_done_(program_.static_steps.size(), false),
        param_changed_(program_.manifest.params.size(), true),
        inputs_(program_.manifest.inputs.size()),
        lent_(program_.manifest.inputs.size(), nullptr),
        params_(program_.manifest.params.size()),
        fed_(program_.manifest.inputs.size(), nullptr),
        outputs_(program_.outputs.size()) {
    for (size_t v = 0; v < program_.values.size(); ++v) full_sizes_.push_back(program_.values[v].type.shape.sizes());
    for (size_t u = 0; u < program_.updates.size(); ++u)
      if (!plan_.update_in_place[u])
        add_end_copy({.from = program_.updates[u].value, .to_state = program_.updates[u].state});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto root = static_cast<size_t>(plan::root_of(program_.problem, program_.outputs[i]).value);
      const Source source = program_.values[root].source;
      if (source == Source::kState || source == Source::kInput) {
        outputs_[i] = output_tensor(i);
        copied_outputs_.push_back(i);
      }
    }
    make_states(shares_states ? sibling : nullptr);
    find_kept_statics();
    for (const ProgramStep& step : program_.steps)
      bodies_.push_back(step.attrs.graphs().empty() ? nullptr : std::make_unique<StepBodies>(step, tables, options));
    if (sibling) take_weights(*sibling);
    set_active_sizes(std::nullopt);
    if (options_.poison) find_deaths();
  }

  void set_param(size_t index, const Tensor& value) override {
    replace(params_[index], aligned(value));
    param_changed_[index] = true;
    statics_stale_ = true;
    for (const auto& bodies : bodies_)
      if (bodies) bodies->set_param(program_.manifest.params[index].name, params_[index]);
  }
  void set_input(size_t index, const Tensor& value) override {
    lend_input(index, nullptr);
    if (is_aligned(value)) {
      replace(inputs_[index], value);  // a copy of the tensor, even one that shares its bytes, would allocate
    } else {
      replace(inputs_[index], value.clone());
    }
  }
  void lend_input(size_t index, const std::byte* bytes) override {
    pointers_stale_ |= lent_[index] != bytes;
    lent_[index] = bytes;
  }

  void set_feed(size_t output, size_t input) override {
    add_end_copy({.from = program_.outputs[output], .to_input = static_cast<int32_t>(input)});
    set_rows_in_use(end_copies_.back());
  }

  bool set_active_sizes(const std::optional<DimBinding>& sizes) override {
    active_ = sizes;
    steps_.clear();
    const bool honoured = !sizes || build_steps_at(*sizes);
    if (!sizes || !honoured) build_full_steps(sizes);
    for (EndCopy& c : end_copies_) set_rows_in_use(c);
    write_dim_values();
    pointers_stale_ = true;
    return honoured;
  }

  void run(std::vector<StepTrace>* trace, const std::vector<bool>*) override {
    is_traced_ = trace != nullptr;
    marks_.clear();
    if (is_traced_) marks_.reserve(program_.steps.size() + program_.static_steps.size());
    if (statics_stale_) compute_statics();
    const size_t once = marks_.size();
    if (pointers_stale_) set_pointers();
    if (options_.poison && plan_.arena_bytes > 0)
      std::memset(arena_.data(), 0xFF, static_cast<size_t>(plan_.arena_bytes));
    for (size_t t = 0; t < steps_.size(); ++t) {
      run_step(steps_[t]);
      if (options_.poison)
        for (const plan::Slot& slot : deaths_[t])
          std::memset(arena_.data() + slot.offset, 0xFF, static_cast<size_t>(slot.size));
    }
    finish();
    for (size_t i = 0; i < marks_.size(); ++i) trace->push_back(traced(marks_[i], i < once));
  }

  const Tensor& output(size_t index) override { return outputs_[index]; }
  Tensor read_input(size_t index) override { return inputs_[index].clone(); }

  Tensor read_state(size_t index) override {
    const Port& port = program_.manifest.states[index];
    const int32_t v = program_.state_values[index];
    if (v < 0) return (*unused_states_)[index].clone();
    Tensor out(port.type.dtype, full_sizes_[static_cast<size_t>(v)]);
    if (out.num_elements() > 0) std::memcpy(out.mutable_bytes().data(), pointer(v), out.bytes().size());
    return out;
  }

  void set_state(size_t index, const Tensor& value) override {
    if (program_.state_values[index] < 0)
      (*unused_states_)[index] = value.clone();
    else if (value.num_elements() > 0)
      std::memcpy(pointer(program_.state_values[index]), value.bytes().data(), value.bytes().size());
  }

  bool shares_state(size_t index, const DeviceProgram& with) const override {
    const auto* other = dynamic_cast<const HostProgram*>(&with);
    if (other == nullptr) return false;
    return program_.state_values[index] < 0 ? unused_states_ == other->unused_states_
                                            : states_[index] == other->states_[index];
  }

  PlanInfo plan() const override {
    PlanInfo info;
    for (const int32_t s : plan_.order) info.steps.push_back(describe(program_.steps[static_cast<size_t>(s)]));
    for (const ProgramStep& step : program_.static_steps) info.static_steps.push_back(describe(step));
    for (size_t v = 0; v < program_.values.size(); ++v)
      if (keep_static_[v]) info.static_bytes += program_.problem.values[v].size_bytes;
    info.arena_bytes = plan_.arena_bytes;
    info.largest_live_bytes = plan_.largest_live_bytes;
    info.unshared_bytes = plan_.unshared_bytes;
    info.persistent_bytes = plan_.persistent_bytes;
    for (const ProgramValue& v : program_.values) {
      if (v.source == Source::kParam) info.param_bytes += v.type.size_bytes();
      if (v.source == Source::kConstant) info.constant_bytes += v.type.size_bytes();
    }
    info.in_place_results = static_cast<int64_t>(plan_.shared.size());
    info.views = static_cast<int64_t>(program_.views.size());
    return info;
  }

  const Tensor* find_param(std::string_view name) const override {
    for (size_t i = 0; i < params_.size(); ++i)
      if (program_.manifest.params[i].name == name) return &params_[i];
    return nullptr;
  }

 private:
  StepInfo describe(const ProgramStep& step) const {
    int32_t v = -1;
    for (const int32_t out : step.outputs) v = v < 0 ? out : v;
    const auto& value = program_.values[static_cast<size_t>(v)];
    const bool in_arena = program_.problem.values[static_cast<size_t>(v)].region == plan::Region::kActivation;
    return {step.node,
            step.origin,
            std::string(step.op->name),
            step.kernel_name,
            value.type,
            in_arena ? plan_.slots[static_cast<size_t>(v)].offset : -1,
            std::string(step.op->name)};
  }

  // After the run, so that what this costs is not in it.
  StepTrace traced(const Mark& mark, bool once) const {
    const ProgramStep& step = *mark.step;
    StepTrace out{.step = describe(step),
                  .once = once,
                  .threads = pool_->threads(),
                  .begin_ns = mark.begin_ns,
                  .end_ns = mark.end_ns};
    std::vector<TensorType> inputs;
    for (const int32_t v : step.inputs) inputs.push_back(program_.values[static_cast<size_t>(v)].type);
    if (once) {  // it may be a packer, which has but one of the op's operands
      for (const auto* types : {&std::as_const(inputs), &step.results})
        for (const TensorType& t : *types) out.bytes += static_cast<double>(t.size_bytes());
    } else {
      const Cost cost = cost_of(*step.op, step.attrs, inputs, step.results);
      out.flops = cost.flops;
      out.bytes = cost.bytes;
    }
    return out;
  }

  void replace(Tensor& old, const Tensor& value) {
    pointers_stale_ |= old.bytes().data() != value.bytes().data();
    old = value;
  }

  std::byte* pointer(int32_t v) const {
    const plan::Root root = plan::root_of(program_.problem, v);
    const int64_t offset = plan_.slots[static_cast<size_t>(v)].offset;
    switch (program_.problem.values[static_cast<size_t>(root.value)].region) {
      case plan::Region::kActivation: return arena_.data() + offset;
      case plan::Region::kPersistent: {
        const int32_t state = state_under_[static_cast<size_t>(root.value)];
        if (state < 0) return persistent_.data() + offset;
        return states_[static_cast<size_t>(state)]->data() + root.offset_bytes;
      }
      case plan::Region::kExternal: break;
    }
    const ProgramValue& value = program_.values[static_cast<size_t>(root.value)];
    if (value.source == Source::kInput && lent_[static_cast<size_t>(value.index)] != nullptr)
      return const_cast<std::byte*>(lent_[static_cast<size_t>(value.index)]) + root.offset_bytes;
    if (value.source == Source::kStatic) {
      const auto& bytes = statics_[static_cast<size_t>(root.value)];
      return bytes == nullptr ? nullptr : bytes->data() + root.offset_bytes;
    }
    const Tensor& t = value.source == Source::kInput   ? inputs_[static_cast<size_t>(value.index)]
                      : value.source == Source::kParam ? params_[static_cast<size_t>(value.index)]
                                                       : value.constant;
    std::byte* data = const_cast<std::byte*>(t.bytes().data());  // read only: no step writes an external value
    return data == nullptr ? nullptr : data + root.offset_bytes;
  }

  // ---- what programs of one graph share ----

  // States have bytes of their own. A value that the plan has put into a state's bytes is in them.
  void make_states(const HostProgram* sibling) {
    const size_t n = program_.state_values.size();
    states_.resize(n);
    state_under_.assign(program_.values.size(), -1);
    unused_states_ = std::make_shared<std::vector<Tensor>>(n);
    bool same_unused = sibling != nullptr;
    for (size_t i = 0; i < n; ++i) {
      const int32_t v = program_.state_values[i];
      if (v < 0) {  // nothing reads or updates it: it is only kept
        const Port& port = program_.manifest.states[i];
        (*unused_states_)[i] = Tensor(port.type.dtype, port.type.shape.bind(program_.binding).sizes());
        same_unused = same_unused && sibling->program_.state_values[i] < 0 &&
                      (*sibling->unused_states_)[i].type() == (*unused_states_)[i].type();
        continue;
      }
      const ProgramValue& value = program_.values[static_cast<size_t>(v)];
      const int32_t other = sibling ? sibling->program_.state_values[i] : -1;
      if (other >= 0 && sibling->program_.values[static_cast<size_t>(other)].type == value.type)
        states_[i] = sibling->states_[i];
      else
        states_[i] = std::make_shared<AlignedBytes>(program_.problem.values[static_cast<size_t>(v)].size_bytes,
                                                    options_.arena_alignment);
      if (program_.problem.values[static_cast<size_t>(v)].size_bytes == 0) continue;  // others may lie where it would
      for (size_t u = 0; u < program_.values.size(); ++u) {
        const plan::Value& planned = program_.problem.values[u];
        if (planned.view_of < 0 && planned.region == plan::Region::kPersistent && planned.size_bytes > 0 &&
            plan_.slots[u].offset == plan_.slots[static_cast<size_t>(v)].offset)
          state_under_[u] = static_cast<int32_t>(i);
      }
    }
    if (same_unused) unused_states_ = sibling->unused_states_;
  }

  // By value: what a static step computes, wherever it is, as a number; -1 for other values. Of the node, how, and of
  // what: attributes, types, and where a part of a weight starts may depend on the sizes that the program is for.
  std::vector<int64_t> static_names(Interned& interned) const {
    std::vector<int64_t> names(program_.values.size(), -1);
    for (const ProgramStep& step : program_.static_steps) {
      std::string of = str(step.graph_node, " ", step.kernel_name, " ", print_attrs(step.attrs));
      for (const int32_t v : step.inputs) {
        const plan::Root root = plan::root_of(program_.problem, v);
        const auto from = static_cast<size_t>(root.value);
        of += str(", ", program_.values[static_cast<size_t>(v)].type, "+", root.offset_bytes, " of ",
                  program_.values[from].index, " ", names[from]);
      }
      for (const TensorType& t : step.results) of += str(" ", t);
      for (size_t i = 0; i < step.outputs.size(); ++i)
        if (const int32_t v = step.outputs[i]; v >= 0)
          names[static_cast<size_t>(v)] =
              interned(str(of, " ", i, " ", program_.problem.values[static_cast<size_t>(v)].size_bytes));
    }
    return names;
  }

  void take_weights(const HostProgram& sibling) {
    for (size_t i = 0; i < params_.size(); ++i)
      if (sibling.params_[i].num_elements() > 0 || !sibling.param_changed_[i]) set_param(i, sibling.params_[i]);
    if (!sibling.statics_computed_ || sibling.statics_stale_) return;
    std::map<int64_t, std::shared_ptr<AlignedBytes>> computed;
    Interned interned;
    const std::vector<int64_t> theirs = sibling.static_names(interned), ours = static_names(interned);
    for (const ProgramStep& step : sibling.program_.static_steps)
      for (size_t i = 0; i < step.outputs.size(); ++i)
        if (const int32_t v = step.outputs[i]; v >= 0 && sibling.keep_static_[static_cast<size_t>(v)])
          computed.emplace(theirs[static_cast<size_t>(v)], sibling.statics_[static_cast<size_t>(v)]);
    for (size_t s = 0; s < program_.static_steps.size(); ++s) {
      const ProgramStep& step = program_.static_steps[s];
      bool done = true;
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const int32_t v = step.outputs[i];
        if (v < 0 || !keep_static_[static_cast<size_t>(v)]) continue;  // what needs it asks for the step
        const auto found = computed.find(ours[static_cast<size_t>(v)]);
        done = done && found != computed.end();
        if (found != computed.end()) statics_[static_cast<size_t>(v)] = found->second;
      }
      static_done_[s] = done;
    }
    std::fill(param_changed_.begin(), param_changed_.end(), false);
  }

  // ---- weights of weights ----

  // Those that a run reads; the others are freed as soon as the static steps are through.
  void find_kept_statics() {
    keep_static_.assign(program_.values.size(), false);
    const auto keep = [&](int32_t v) {
      const auto root = static_cast<size_t>(plan::root_of(program_.problem, v).value);
      if (program_.values[root].source == Source::kStatic) keep_static_[root] = true;
    };
    for (const ProgramStep& step : program_.steps)
      for (const int32_t v : step.inputs) keep(v);
    for (const int32_t v : program_.outputs) keep(v);
    for (const plan::Update& u : program_.updates) keep(u.value);
  }

  // Runs the static steps that depend on a param that was set since the last time, and what those need again.
  void compute_statics() {
    const size_t n = program_.static_steps.size();
    std::vector<bool> due(n), needed(program_.values.size());
    for (size_t s = 0; s < n; ++s) {
      const ProgramStep& step = program_.static_steps[s];
      due[s] = !static_done_[s];
      for (const int32_t p : step.params) due[s] = due[s] || param_changed_[static_cast<size_t>(p)];
    }
    for (size_t s = n; s-- > 0;) {
      const ProgramStep& step = program_.static_steps[s];
      for (const int32_t v : step.outputs) due[s] = due[s] || (v >= 0 && needed[static_cast<size_t>(v)]);
      if (!due[s]) continue;
      for (const int32_t v : step.inputs) {
        const auto root = static_cast<size_t>(plan::root_of(program_.problem, v).value);
        if (program_.values[root].source == Source::kStatic && !keep_static_[root]) needed[root] = true;
      }
    }
    for (size_t s = 0; s < n; ++s)
      if (due[s]) {
        progress("preparing weights", static_cast<double>(s) / static_cast<double>(n));
        run_static(program_.static_steps[s]);
        static_done_[s] = true;
      }
    for (size_t v = 0; v < statics_.size(); ++v)
      if (!keep_static_[v]) statics_[v].reset();
    std::fill(param_changed_.begin(), param_changed_.end(), false);
    statics_computed_ = true;
    statics_stale_ = false;
    pointers_stale_ = true;
  }

  void run_static(const ProgramStep& step) {
    const AlignedBytes scratch(step.scratch_bytes, options_.arena_alignment);
    for (const int32_t v : step.outputs)
      if (v >= 0)
        statics_[static_cast<size_t>(v)] = std::make_shared<AlignedBytes>(
            program_.problem.values[static_cast<size_t>(v)].size_bytes, options_.arena_alignment);
    ReadyStep r = ready(step, nullptr, nullptr);
    r.scratch = scratch.data();
    connect(r);
    run_step(r);
  }

  // ---- steps at full and at active sizes ----

  // `at` is the step's node at the active sizes, in the graph `bound`; null: at full sizes.
  ReadyStep ready(const ProgramStep& step, const Node* at, const Graph* bound) const {
    ReadyStep r{.step = &step, .attrs = at ? at->attrs : step.attrs};
    for (size_t i = 0; i < step.inputs.size(); ++i)
      r.sizes.push_back(at ? bound->type(at->inputs[i]).shape.sizes()
                           : full_sizes_[static_cast<size_t>(step.inputs[i])]);
    for (size_t i = 0; i < step.outputs.size(); ++i)
      r.sizes.push_back((at ? at->results[i].type : step.results[i]).shape.sizes());
    for (size_t i = 0; i < step.inputs.size(); ++i)
      r.inputs.push_back({program_.values[static_cast<size_t>(step.inputs[i])].type.dtype, r.sizes[i], nullptr});
    for (size_t i = 0; i < step.outputs.size(); ++i)
      r.outputs.push_back({step.results[i].dtype, r.sizes[step.inputs.size() + i], nullptr});
    return r;
  }

  // All rows, but those steps that yield a state: padded rows must not enter it.
  void build_full_steps(const std::optional<DimBinding>& active) {
    std::optional<Graph> bound;
    for (const int32_t s : plan_.order) {
      const ProgramStep& step = program_.steps[static_cast<size_t>(s)];
      const bool yields_state =
          step.op->traits.state_result >= 0 && step.op->traits.state_result < static_cast<int>(step.outputs.size());
      if (!active || !yields_state) {
        steps_.push_back(ready(step, nullptr, nullptr));
        steps_.back().bodies = bodies_[static_cast<size_t>(s)].get();
        continue;
      }
      if (!bound) {
        bound = bind(program_.symbolic, *active);
        if (const std::string moved = moved_view(*bound, program_.views); !moved.empty())
          fail(ErrorKind::kUnsupported,
               str("The graph updates a state and ", moved, ", which an active extent would move."));
      }
      // Copied together where the active rows are not a prefix of the tensor's bytes.
      const Node& node = bound->nodes()[static_cast<size_t>(step.graph_node)];
      steps_.push_back(ready(step, &node, &*bound));
      ReadyStep& r = steps_.back();
      const auto gather = [&](int32_t v, const View& view, std::vector<Gathered>& list) {
        const std::vector<int64_t> active_sizes(view.sizes.begin(), view.sizes.end());
        if (v < 0 || is_prefix(active_sizes, full_sizes_[static_cast<size_t>(v)])) return;
        list.push_back(
            {v, active_sizes, std::vector<std::byte>(static_cast<size_t>(view.elements()) * size_of(view.dtype))});
      };
      for (size_t i = 0; i < step.inputs.size(); ++i) gather(step.inputs[i], r.inputs[i], r.gathered_inputs);
      for (size_t i = 0; i < step.outputs.size(); ++i) gather(step.outputs[i], r.outputs[i], r.gathered_outputs);
    }
  }

  // Every step at the active sizes, if every step can be cut short (spec 40, 5); false and no steps otherwise.
  bool build_steps_at(const DimBinding& sizes) {
    std::optional<Graph> at_active;
    std::string why;
    try {
      at_active = bind(program_.symbolic, sizes);
      why = moved_view(*at_active, program_.views);
    } catch (const Error& e) {  // a narrow of fixed rows that are not there, say
      why = e.message();
    }
    if (!why.empty()) {
      log(LogLevel::kInfo, str("The active extent is not used: ", why));
      return false;
    }
    const Graph& bound = *at_active;
    for (const ProgramStep& step : program_.static_steps) {
      if (step.is_packing) continue;
      const Node& node = bound.nodes()[static_cast<size_t>(step.graph_node)];
      const auto [inputs, outputs] = extent_types(step, node, bound);
      if (why = why_not_prefix(*step.op, step.attrs, node.attrs, inputs, outputs); !why.empty()) {
        log(LogLevel::kInfo, str("The active extent is not used: ", step.node, " (", step.op->name, ") ", why, "."));
        return false;
      }
    }
    for (const int32_t s : plan_.order) {
      const ProgramStep& step = program_.steps[static_cast<size_t>(s)];
      const Node& node = bound.nodes()[static_cast<size_t>(step.graph_node)];
      if (why = why_unsafe(step, node, bound); !why.empty()) {
        log(LogLevel::kInfo, str("The active extent is not used: ", step.node, " (", step.op->name, ") ", why, "."));
        steps_.clear();
        return false;
      }
      const bool full = step.op->traits.extent == ExtentRule::kFull;
      steps_.push_back(ready(step, full ? nullptr : &node, full ? nullptr : &bound));
    }
    return true;
  }

  std::pair<std::vector<ExtentType>, std::vector<ExtentType>> extent_types(const ProgramStep& step, const Node& node,
                                                                           const Graph& bound) const {
    std::vector<ExtentType> inputs, outputs;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      inputs.push_back({full_sizes_[static_cast<size_t>(step.inputs[i])], bound.type(node.inputs[i])});
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (step.outputs[i] >= 0)
        outputs.push_back({full_sizes_[static_cast<size_t>(step.outputs[i])], node.results[i].type});
    return {std::move(inputs), std::move(outputs)};
  }
  std::string why_unsafe(const ProgramStep& step, const Node& node, const Graph& bound) const {
    const auto [inputs, outputs] = extent_types(step, node, bound);
    return host::why_unsafe(*step.op, step.attrs, inputs, outputs);
  }

  void write_dim_values() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const ProgramValue& value = program_.values[v];
      if (value.source != Source::kDimValue) continue;
      const int64_t size = value.dim.bind(active_ ? *active_ : program_.binding).value();
      require(size <= std::numeric_limits<int32_t>::max(), "Size ", value.dim, " (", size, ") does not fit i32.");
      const auto narrow = static_cast<int32_t>(size);
      std::memcpy(pointer(static_cast<int32_t>(v)), &narrow, sizeof narrow);
    }
  }

  // ---- running ----

  void connect(ReadyStep& r) {
    for (size_t i = 0; i < r.inputs.size(); ++i) r.inputs[i].data = pointer(r.step->inputs[i]);
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      const bool wanted = r.step->outputs[i] >= 0 && r.outputs[i].elements() > 0;
      r.outputs[i].data = wanted ? pointer(r.step->outputs[i]) : nullptr;
    }
  }

  void set_pointers() {
    for (ReadyStep& r : steps_) {
      connect(r);
      const auto s = static_cast<size_t>(r.step - program_.steps.data());
      if (r.step->scratch_bytes > 0) r.scratch = arena_.data() + plan_.scratch[s].offset;
      for (Gathered& g : r.gathered_inputs)
        for (size_t i = 0; i < r.inputs.size(); ++i)
          if (r.step->inputs[i] == g.value) r.inputs[i].data = g.bytes.data();
      for (Gathered& g : r.gathered_outputs)
        for (size_t i = 0; i < r.outputs.size(); ++i)
          if (r.step->outputs[i] == g.value) r.outputs[i].data = g.bytes.data();
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (std::find(copied_outputs_.begin(), copied_outputs_.end(), i) != copied_outputs_.end()) continue;
      const int32_t v = program_.outputs[i];
      const ProgramValue& value = program_.values[static_cast<size_t>(v)];
      const auto& sizes = full_sizes_[static_cast<size_t>(v)];
      const auto bytes = static_cast<size_t>(value.type.size_bytes());
      const std::byte* data = bytes == 0 ? nullptr : pointer(v);
      if (outputs_[i].bytes().data() == data && outputs_[i].sizes() == sizes && outputs_[i].dtype() == value.type.dtype)
        continue;
      outputs_[i] = Tensor::borrow(value.type.dtype, sizes, {data, bytes});
    }
    pointers_stale_ = false;
  }

  void run_step(ReadyStep& r) {
    bool empty = true;  // nothing to compute at the active sizes
    for (const View& v : r.outputs) empty &= v.data == nullptr;
    if (empty) return;
    const int64_t begin_ns = is_traced_ ? now_ns() : 0;
    try {
      for (Gathered& g : r.gathered_inputs)
        box_copy(g.active, pointer(g.value), full_sizes_[static_cast<size_t>(g.value)], g.bytes.data(), g.active,
                 element_size(g.value));
      r.step->kernel(Call(r.attrs, r.inputs, r.outputs, *this, {pool_.get(), r.scratch, r.bodies}));
      for (Gathered& g : r.gathered_outputs)
        box_copy(g.active, g.bytes.data(), g.active, pointer(g.value), full_sizes_[static_cast<size_t>(g.value)],
                 element_size(g.value));
    } catch (Error& e) {
      e.add_context(str("running ", r.step->node, " (", r.step->op->name, ")", from_text(r.step->origin)));
      throw;
    }
    if (is_traced_) marks_.push_back({r.step, begin_ns, now_ns()});
  }

  size_t element_size(int32_t v) const { return size_of(program_.values[static_cast<size_t>(v)].type.dtype); }

  // A copy whose source is a state or a fed input may be overwritten by another copy of the same run: it goes through a
  // buffer of its own, so that all updates take effect together.
  void add_end_copy(EndCopy copy) {
    const auto root = static_cast<size_t>(plan::root_of(program_.problem, copy.from).value);
    const Source source = program_.values[root].source;
    if (source == Source::kState || source == Source::kInput)
      copy.staged.resize(static_cast<size_t>(program_.problem.values[static_cast<size_t>(copy.from)].size_bytes));
    end_copies_.push_back(std::move(copy));
  }

  void set_rows_in_use(EndCopy& c) const {
    c.rows_in_use.clear();
    if (!active_ || c.to_input < 0) return;
    c.rows_in_use = program_.values[static_cast<size_t>(c.from)].symbolic.shape.bind(*active_).sizes();
    if (c.rows_in_use == full_sizes_[static_cast<size_t>(c.from)]) c.rows_in_use.clear();
  }

  // Its bytes count as handed out, so that fixed_id() tells whether the caller has sealed them.
  Tensor output_tensor(size_t i) const {
    const auto v = static_cast<size_t>(program_.outputs[i]);
    Tensor t(program_.values[v].type.dtype, full_sizes_[v]);
    t.mutable_bytes();
    return t;
  }

  void finish() {
    for (const size_t i : copied_outputs_) {
      if (outputs_[i].num_elements() == 0) continue;
      if (outputs_[i].fixed_id() != 0) outputs_[i] = output_tensor(i);  // a sealed one stays the caller's
      std::memcpy(outputs_[i].mutable_bytes().data(), pointer(program_.outputs[i]), outputs_[i].bytes().size());
    }
    for (EndCopy& c : end_copies_)
      if (!c.staged.empty()) std::memcpy(c.staged.data(), pointer(c.from), c.staged.size());
    for (EndCopy& c : end_copies_) {
      const auto size = static_cast<size_t>(program_.problem.values[static_cast<size_t>(c.from)].size_bytes);
      if (size == 0) continue;
      const std::byte* from = c.staged.empty() ? pointer(c.from) : c.staged.data();
      if (c.to_state >= 0) {
        std::memcpy(pointer(c.to_state), from, size);
        continue;
      }
      Tensor& input = inputs_[static_cast<size_t>(c.to_input)];
      if (!fed(static_cast<size_t>(c.to_input))) {  // from now on the handle's bytes are ours
        input = c.rows_in_use.empty() ? Tensor(input.dtype(), input.sizes()) : input.clone();
        fed_[static_cast<size_t>(c.to_input)] = input.bytes().data();
        pointers_stale_ = true;
      }
      if (c.rows_in_use.empty())
        std::memcpy(input.mutable_bytes().data(), from, size);
      else  // rows beyond an active extent stay what they were (spec 40, 5)
        box_copy(c.rows_in_use, from, input.sizes(), input.mutable_bytes().data(), input.sizes(),
                 size_of(input.dtype()));
    }
  }

  bool fed(size_t input) const { return fed_[input] != nullptr && fed_[input] == inputs_[input].bytes().data(); }

  // What dies after each step, for the poison: the bytes of roots whose block is not taken over in place.
  void find_deaths() {
    const size_t n = program_.values.size();
    std::vector<int32_t> death(n, -1);
    std::vector<bool> taken(n);
    for (const auto& [written, read] : plan_.shared)
      taken[static_cast<size_t>(plan::root_of(program_.problem, read).value)] = true;
    for (size_t t = 0; t < plan_.order.size(); ++t) {
      const plan::Step& step = program_.problem.steps[static_cast<size_t>(plan_.order[t])];
      for (const auto* list : {&step.reads, &step.writes})
        for (const int32_t v : *list)
          death[static_cast<size_t>(plan::root_of(program_.problem, v).value)] = static_cast<int32_t>(t);
    }
    deaths_.resize(plan_.order.size());
    for (size_t v = 0; v < n; ++v)
      if (death[v] >= 0 && !taken[v] && program_.problem.values[v].region == plan::Region::kActivation)
        deaths_[static_cast<size_t>(death[v])].push_back(plan_.slots[v]);
  }

  Program program_;
  CompileOptions options_;
  plan::Plan plan_;
  std::shared_ptr<ThreadPool> pool_;
  AlignedBytes arena_, persistent_;
  std::vector<std::shared_ptr<AlignedBytes>> states_;   // by manifest index
  std::vector<int32_t> state_under_;                    // by value: the state whose bytes it takes; -1: none
  std::vector<std::shared_ptr<AlignedBytes>> statics_;  // by value
  std::vector<bool> static_done_;                       // by static step
  std::vector<bool> keep_static_;                       // by value
  std::vector<bool> param_changed_;
  bool statics_computed_ = false, statics_stale_ = true;
  std::shared_ptr<std::vector<Tensor>> unused_states_;
  std::vector<Tensor> inputs_;
  std::vector<const std::byte*> lent_;  // by input: where it is read; null: in inputs_
  std::vector<Tensor> params_;
  std::vector<const std::byte*> fed_;  // by input: the buffer a feed writes
  std::vector<Tensor> outputs_;
  std::vector<size_t> copied_outputs_;  // a state's old value, or an input: their bytes change when the run ends
  std::vector<std::vector<int64_t>> full_sizes_;
  std::vector<std::unique_ptr<StepBodies>> bodies_;  // by step; at active sizes regions run through the evaluator
  std::vector<ReadyStep> steps_;
  std::vector<EndCopy> end_copies_;
  std::vector<std::vector<plan::Slot>> deaths_;
  std::optional<DimBinding> active_;
  bool pointers_stale_ = true;
  bool is_traced_ = false;
  std::vector<Mark> marks_;  // of the run, when it is traced
};

}  // namespace

std::unique_ptr<InnerProgram> make_program(const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
                                           std::span<const KernelTable> tables, const CompileOptions& options,
                                           const Sibling& sibling) {
  const int threads = shared_pool(options.threads)->threads();
  return std::make_unique<HostProgram>(lower(symbolic, manifest, binding, tables, threads), tables, options,
                                       dynamic_cast<const HostProgram*>(sibling.program), sibling.shares_states);
}

}  // namespace rlx::host
