#include "backends/webgpu/program_builder.h"

#include <algorithm>

#include "backends/host/program.h"
#include "backends/webgpu/node_places.h"
#include "backends/webgpu/step_names.h"
#include "ir/text.h"
#include "wgsl/cast_f32_to_f16.h"
#include "wgsl/convert.h"
#include "wgsl/poison_workgroup.h"
#include "wgsl/unpack.h"

namespace rlx::webgpu {

ProgramBuilder::ProgramBuilder(const Graph& symbolic, const Graph& bound, const Manifest& manifest,
                               const Device& device, const CompileOptions& options)
    : symbolic_(symbolic), bound_(bound), device_(device), options_(options), used_(host::used_values(bound)) {
  program_.manifest = manifest;
  program_.state_values.assign(manifest.states.size(), -1);
}

Program ProgramBuilder::finish(bool nested) {
  for (const Output& o : bound_.outputs())
    program_.outputs.push_back(nested ? plain(value_.at(o.value)) : value_.at(o.value));
  for (const StateUpdate& u : bound_.updates())
    program_.updates.push_back({value_.at(u.state), plain(value_.at(u.value))});
  program_.problem.outputs = program_.outputs;
  program_.problem.updates = program_.updates;
  drop_unread_steps();
  pin_outputs();
  if (options_.poison) add_poison();
  return std::move(program_);
}

void ProgramBuilder::begin_node(size_t index) {
  node_ = &bound_.nodes()[index];
  node_index_ = static_cast<int64_t>(index);
  label_ = bound_.label(node_->results[0].id);
  node_params_.reset();
  written_.clear();
}

// ---- values ----

int32_t ProgramBuilder::new_value(const TensorType& type, const TensorType& symbolic, Storage storage, Source source,
                                  std::string label) {
  const auto index = static_cast<int32_t>(program_.values.size());
  program_.values.push_back(
      {.type = type, .symbolic = symbolic, .storage = storage, .source = source, .label = std::move(label)});
  const bool on_device = storage != Storage::kHost;
  auto region = plan::Region::kActivation;
  if (source == Source::kInput || source == Source::kState || source == Source::kDimValue || !on_device)
    region = plan::Region::kPersistent;
  if (source == Source::kParam || source == Source::kConstant || source == Source::kStatic)
    region = plan::Region::kExternal;
  program_.problem.values.push_back({.size_bytes = on_device ? storage_bytes(storage, type) : 0, .region = region});
  return index;
}

int32_t ProgramBuilder::add_result(size_t r, Storage storage, Source source) {
  const Result& result = node_->results[r];
  return value_[result.id] =
             new_value(result.type, symbolic_node().results[r].type, storage, source, bound_.label(result.id));
}

void ProgramBuilder::add_view(int32_t v, int32_t of, int64_t offset_bytes) {
  const plan::Root root = plan::root_of(program_.problem, of);
  plan::Value& planned = program_.problem.values[static_cast<size_t>(v)];
  const plan::Value& whole = program_.problem.values[static_cast<size_t>(root.value)];
  planned.view_of = root.value;
  planned.view_offset_bytes = root.offset_bytes + offset_bytes;
  planned.region = whole.region;
  // Sizes are whole words: of a view that starts within one, that would be too much.
  planned.size_bytes = std::min(planned.size_bytes, whole.size_bytes - planned.view_offset_bytes);
}

Operand ProgramBuilder::add_table(std::span<const uint32_t> words) {
  Tensor tensor = Tensor::of<uint32_t>(DType::U32, {static_cast<int64_t>(words.size())}, words);
  const int32_t v = new_value(tensor.type(), tensor.type(), Storage::kU32, Source::kConstant, "a table");
  program_.values[static_cast<size_t>(v)].constant = std::move(tensor);
  make_static(v, {});
  return {v, false};
}

const std::vector<int32_t>* ProgramBuilder::static_params(int32_t v) const {
  const auto i = static_cast<size_t>(v);
  return i < static_params_.size() && static_params_[i] ? &*static_params_[i] : nullptr;
}

void ProgramBuilder::make_static(int32_t v, std::vector<int32_t> params) {
  static_params_.resize(program_.values.size());
  static_params_[static_cast<size_t>(v)] = std::move(params);
}

// ---- forms ----

Storage ProgramBuilder::kernel_storage(int32_t v) const {
  return webgpu::kernel_storage(value(v).type.dtype, device_, options_);
}
Storage ProgramBuilder::computed_storage(int32_t v) const {
  return webgpu::computed_storage(value(v).type.dtype, device_, options_);
}

int32_t ProgramBuilder::new_form(int32_t v, Storage to, std::string_view how) {
  const TensorType type = value(v).type, symbolic = value(v).symbolic;  // values may move
  std::optional<std::vector<int32_t>> params;
  if (const auto* own = static_params(v)) params = *own;
  const int32_t out =
      new_value(type, symbolic, to, params ? Source::kStatic : Source::kStep, str(value(v).label, ", ", how));
  if (params) make_static(out, std::move(*params));
  return out;
}

// `kernel`: one thread per element, operands x and y.
template <class P>
void ProgramBuilder::emit_form(int32_t v, int32_t out, KernelKey kernel, std::string_view name) {
  const int64_t n = value(v).type.shape.num_elements();
  if (n == 0) return;
  Dispatch d{.kernel = std::move(kernel),
             .operands = {{v, false}, {out, true}},
             .params = {P{.n = to_u32(n)}, {&P::n}},
             .grid = {.x = {.items = n, .per_group = 256, .active = true}},
             .extent_safe = true,
             .of_one_value = true};
  append(make_step(std::move(d), std::string(name)), is_static(v), false, false);
}

int32_t ProgramBuilder::convert(int32_t v, Storage to) {
  const int32_t out = new_form(v, to, "converted");
  emit_convert(v, out);
  return out;
}
void ProgramBuilder::emit_convert(int32_t v, int32_t out) {
  emit_form<wgsl::convert::Params>(
      v, out,
      {"convert",
       {{"S", std::string(element_type(value(v).storage))}, {"T", std::string(element_type(value(out).storage))}}},
      "convert");
}

int32_t ProgramBuilder::unpack(int32_t v, Storage to) {
  const DType dtype = value(v).type.dtype;
  const int32_t out = new_form(v, to, "unpacked");
  const uint32_t kind = dtype == DType::F16 ? 6 : packed_kind(dtype);
  emit_form<wgsl::unpack::Params>(v, out, {"unpack", {{"T", std::string(element_type(to))}}, {{"KIND", kind}}},
                                  "unpack");
  return out;
}

int32_t ProgramBuilder::f16_copy(int32_t v) {
  if (const auto it = f16_copies_.find(v); it != f16_copies_.end()) return it->second;
  const int32_t out = f16_copies_[v] = new_form(v, Storage::kF16, "as f16");
  emit_form<wgsl::cast_f32_to_f16::Params>(v, out, {"cast_f32_to_f16"}, "cast_f32_to_f16");
  return out;
}

int32_t ProgramBuilder::unpacked(int32_t v) {
  const Storage to = kernel_storage(v);
  if (value(v).storage == to || value(v).storage == Storage::kHost) return v;
  if (const auto it = unpacked_.find(v); it != unpacked_.end()) return it->second;
  return unpacked_[v] = value(v).storage == Storage::kPacked ? unpack(v, to) : convert(v, to);
}

int32_t ProgramBuilder::plain(int32_t v) {
  const Storage to = computed_storage(v);
  if (value(v).storage == Storage::kPacked) return to == kernel_storage(v) ? unpacked(v) : unpack(v, to);
  if (value(v).storage == Storage::kHost || value(v).type.shape.num_elements() == 0) return v;
  return view_offset_bytes(v) % 4 == 0 ? v : unpack(v, to);
}

int32_t ProgramBuilder::copied(int32_t v) {
  if (const auto it = copies_.find(v); it != copies_.end()) return it->second;
  return copies_[v] = convert(v, value(v).storage);
}

int32_t ProgramBuilder::written(int32_t v) {
  const Storage to = kernel_storage(v);
  if (value(v).storage == to || value(v).storage == Storage::kHost) return v;
  const auto [it, is_new] = written_.emplace(v, -1);
  if (is_new) it->second = new_form(v, to, "to be converted");
  return it->second;
}

void ProgramBuilder::convert_written() {
  for (const auto& [v, form] : written_) emit_convert(form, v);
}

// ---- steps ----

Step ProgramBuilder::make_step(std::variant<Dispatch, HostCall, Loop> work, std::string name) const {
  return {.work = std::move(work),
          .op = node_->op,
          .name = std::move(name),
          .node = label_,
          .origin = node_->origin,
          .graph_node = node_index_};
}

// Operands whose bytes lie together in a buffer that the dispatch may write share a binding (spec 40, 3), which has one
// element type. So where a kernel reads parts of one value as different types, those of all but the first type are
// copied.
void ProgramBuilder::separate_types(Dispatch& dispatch, bool is_static) {
  const auto may_be_written = [&](const Operand& o) {
    const Source source = value(root_of(o.value)).source;
    return source == Source::kStep || source == Source::kState || (source == Source::kStatic && is_static);
  };
  std::vector<Operand>& operands = dispatch.operands;
  std::optional<KernelFacts> facts;
  for (size_t i = 1; i < operands.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Operand &first = operands[j], &second = operands[i];
      if (first.write || second.write || root_of(first.value) != root_of(second.value) || !may_be_written(second))
        continue;
      if (!facts) facts = kernel_facts(dispatch.kernel, options_.webgpu.kernels);
      if (facts->bindings[j].element == facts->bindings[i].element) continue;
      operands[i].value = copied(second.value);
      break;
    }
}

void ProgramBuilder::emit(Dispatch dispatch, std::string_view name, bool is_static) {
  for (const Axis* axis : {&dispatch.grid.x, &dispatch.grid.y, &dispatch.grid.z})
    if (axis->items == 0) return;
  separate_types(dispatch, is_static);
  const bool in_place = dispatch.in_place;
  std::string called =
      name.empty() ? step_name(*node_->op, node_->attrs, input_types(bound_, *node_)) : std::string(name);
  append(make_step(std::move(dispatch), std::move(called)), is_static, true, in_place);
}

void ProgramBuilder::add_host_step(std::variant<Dispatch, HostCall, Loop> work, std::string name) {
  append(make_step(std::move(work), std::move(name)), node_params_.has_value(), false, false);
}

std::optional<LowerCall::IndexErrors> ProgramBuilder::add_index_check(
    int32_t indices, std::vector<int64_t> what,
    std::function<std::string(int64_t value, int64_t position, int64_t rows)> complaint) {
  if (!index_checks_.emplace(indices, std::move(what)).second) return std::nullopt;
  if (program_.index_errors < 0) {
    const TensorType words{Shape{Program::kIndexWords}, DType::U32};
    program_.index_errors = new_value(words, words, Storage::kU32, Source::kConstant, "indices out of range");
    make_static(program_.index_errors, {});
    program_.values[static_cast<size_t>(program_.index_errors)].constant = Tensor(DType::U32, {Program::kIndexWords});
  }
  program_.index_checks.push_back({label_, std::string(node_->op->name), node_->origin, std::move(complaint)});
  return LowerCall::IndexErrors{{program_.index_errors, true}, static_cast<uint32_t>(program_.index_checks.size() - 1)};
}

static void find_operands(const Step& step, int32_t index_errors, std::vector<int32_t>& reads,
                          std::vector<int32_t>& writes) {
  if (const auto* d = std::get_if<Dispatch>(&step.work)) {
    for (const Operand& o : d->operands) {    // one may be bound twice, in an optional operand's place
      if (o.value == index_errors) continue;  // outside the plan, as weights are
      auto& list = o.write ? writes : reads;
      if (std::find(list.begin(), list.end(), o.value) == list.end()) list.push_back(o.value);
    }
  } else if (const auto* h = std::get_if<HostCall>(&step.work)) {
    reads = h->inputs;
    writes = h->outputs;
  } else {
    const auto& loop = std::get<Loop>(step.work);
    reads = loop.inputs;
    std::copy_if(loop.outputs.begin(), loop.outputs.end(), std::back_inserter(writes),
                 [](int32_t v) { return v >= 0; });
  }
}

// `is_of_node`: not a form of a value that it reads. `in_place`: the traits of its op hold.
void ProgramBuilder::append(Step step, bool is_static, bool is_of_node, bool in_place) {
  std::vector<int32_t> reads, writes;
  find_operands(step, program_.index_errors, reads, writes);
  if (is_static) {
    std::vector<int32_t> params;
    for (const int32_t v : reads)
      if (const auto* own = static_params(v)) params.insert(params.end(), own->begin(), own->end());
    if (!is_of_node && node_params_) params.insert(params.end(), node_params_->begin(), node_params_->end());
    std::sort(params.begin(), params.end());
    params.erase(std::unique(params.begin(), params.end()), params.end());
    step.params = std::move(params);
    if (node_params_) {
      step.node_text = print_attrs(node_->attrs);
      for (const ValueId id : node_->inputs) step.node_text += str(", ", bound_.type(id));
      for (const Result& r : node_->results) step.node_text += str(" ", r.type);
    }
    program_.static_steps.push_back(std::move(step));
    return;
  }
  plan::Step planned;
  for (auto* list : {&reads, &writes}) {  // an absent operand is bound as another one
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  for (const int32_t v : reads)  // nobody writes an empty value
    if (value(v).type.shape.num_elements() > 0) planned.reads.push_back(v);
  planned.writes = writes;
  if (in_place) add_sharing(planned);
  program_.steps.push_back(std::move(step));
  program_.problem.steps.push_back(std::move(planned));
}

void ProgramBuilder::add_sharing(plan::Step& planned) const {
  const Node& node = *node_;
  const Traits& traits = node.op->traits;
  const auto try_share = [&](size_t result, uint32_t operands) {
    if (result >= node.results.size() || !used_.contains(node.results[result].id)) return;
    const int32_t written = value_.at(node.results[result].id);
    for (const int32_t read : planned.reads) {
      // Operands that may be overwritten, and are nothing else of this node.
      bool ok = true, found = false;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (value_.at(node.inputs[i]) == read) {
          found = true;
          ok &= i < 32 && (operands >> i & 1) != 0;
        }
      if (!found || !ok || value(written).storage != value(read).storage ||
          value(written).type.shape.num_elements() != value(read).type.shape.num_elements())
        continue;
      planned.may_share.emplace_back(written, read);
    }
  };
  if (traits.in_place != 0) try_share(0, traits.in_place);
  if (traits.state_operand >= 0 && traits.state_result >= 0)
    try_share(static_cast<size_t>(traits.state_result), uint32_t{1} << traits.state_operand);
}

void ProgramBuilder::add_poison() {
  namespace k = wgsl::poison_workgroup;
  const TensorType word{Shape{1}, DType::U32};
  const int32_t sink = new_value(word, word, Storage::kU32, Source::kConstant, "poison");
  make_static(sink, {});
  program_.values[static_cast<size_t>(sink)].constant = Tensor(DType::U32, {1});
  const uint32_t fours = device_.limits().workgroup_bytes / 16;
  const int64_t groups = device_.facts().software ? 4 : 2048;  // so that all of a GPU's memory has its turn
  program_.poison = Step{.work = Dispatch{.kernel = {.kernel = "poison_workgroup", .constants = {{"FOURS", fours}}},
                                          .operands = {{sink, true}},
                                          .params = k::Params{.pattern = 0xFFFFFFFF, .never = 1},
                                          .grid = {.x = {.items = groups}},
                                          .extent_safe = true},
                         .name = "poison",
                         .node = "poison"};
}

// Copies whose readers read what was copied (read_strided, f16_weight) are no steps, and those of weights take no
// bytes.
void ProgramBuilder::drop_unread_steps() {
  const plan::Problem& problem = program_.problem;
  std::vector<bool> read(problem.values.size());
  const auto mark = [&](int32_t v) { read[static_cast<size_t>(root_of(v))] = true; };
  for (const int32_t v : problem.outputs) mark(v);
  for (const plan::Update& u : problem.updates) mark(u.value);
  std::vector<Step> steps;
  std::vector<plan::Step> planned;
  for (size_t i = problem.steps.size(); i-- > 0;) {
    plan::Step& step = program_.problem.steps[i];
    // What writes nothing that the plan knows of checks indices.
    const bool is_used = !std::holds_alternative<Dispatch>(program_.steps[i].work) || step.writes.empty() ||
                         std::any_of(step.writes.begin(), step.writes.end(),
                                     [&](int32_t v) { return read[static_cast<size_t>(root_of(v))]; });
    if (!is_used) continue;
    for (const int32_t v : step.reads) mark(v);
    for (const int32_t v : step.writes) mark(v);  // it may add to what an earlier step has written
    steps.push_back(std::move(program_.steps[i]));
    planned.push_back(std::move(step));
  }
  program_.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
  program_.problem.steps.assign(planned.rbegin(), planned.rend());

  std::vector<Step> static_steps;
  for (size_t i = program_.static_steps.size(); i-- > 0;) {
    Step& step = program_.static_steps[i];
    std::vector<int32_t> reads, writes;
    find_operands(step, program_.index_errors, reads, writes);
    const bool is_used =
        !std::holds_alternative<Dispatch>(step.work) || writes.empty() ||
        std::any_of(writes.begin(), writes.end(), [&](int32_t v) { return read[static_cast<size_t>(root_of(v))]; });
    for (const int32_t v : is_used ? reads : std::vector<int32_t>()) mark(v);
    for (const int32_t v : writes) {
      if (is_used)
        mark(v);
      else
        program_.problem.values[static_cast<size_t>(root_of(v))].size_bytes = 0;
    }
    if (is_used) static_steps.push_back(std::move(step));
  }
  program_.static_steps.assign(std::make_move_iterator(static_steps.rbegin()),
                               std::make_move_iterator(static_steps.rend()));
}

// Outputs and new states keep their bytes until the next run.
void ProgramBuilder::pin_outputs() {
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

}  // namespace rlx::webgpu
