#include "backends/webgpu/executor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text_table.h"
#include "rlx/log.h"

namespace rlx::webgpu {

namespace {

constexpr uint64_t kSmallInputBytes = 64 << 10;  // compared with what was uploaded last

}  // namespace

WebGpuProgram::WebGpuProgram(Program program, std::shared_ptr<Device> device, const CompileOptions& options,
                             Commands* parent, const WebGpuProgram* sibling, bool shares_states)
    : device_(std::move(device)),
      api_(device_->api()),
      options_(options),
      limits_(limits_for(*device_, options)),
      program_(std::move(program)),
      plan_(plan::make_plan(program_.problem, plan_options_for(limits_, options_))),
      memory_(*device_, limits_, program_, plan_, options_, sibling ? &sibling->memory_ : nullptr, shares_states),
      dispatches_(*device_, limits_, program_, memory_, options_),
      commands_(parent ? *parent : own_commands_.emplace(*device_, stats_)),
      nested_(parent != nullptr),
      uploads_(*device_, program_, memory_, stats_),
      readback_(*device_, program_, memory_, stats_, limits_.max_buffer_bytes),
      inputs_(program_.manifest.inputs.size()),
      params_(program_.manifest.params.size()),
      param_changed_(program_.manifest.params.size(), true),
      static_done_(program_.static_steps.size(), false),
      host_(program_.values.size()) {
  stats_.buffers += memory_.count();
  if (nested_) options_.webgpu.skip_readback = false;  // of predicates
  for (size_t v = 0; v < program_.values.size(); ++v)
    if (program_.values[v].source == Source::kInput)
      inputs_[static_cast<size_t>(program_.values[v].index)].value = static_cast<int32_t>(v);
  if (options_.poison) poison_buffers();
  find_host_roots();
  for (Step& s : program_.static_steps) static_ready_.push_back(ready(s));
  for (const int32_t s : plan_.order) ready_.push_back(ready(program_.steps[static_cast<size_t>(s)]));
  if (program_.poison) poison_dispatch_ = dispatches_.add(*program_.poison, std::get<Dispatch>(program_.poison->work));
  dispatches_.make(stats_);
  upload_constants();
  write_dim_values();
  for (const int32_t v : program_.outputs) outputs_.push_back(output_tensor(v));
  output_items_.assign(outputs_.size(), -1);
  for (const int32_t v : program_.state_values) {
    const Port& port = program_.manifest.states[host_states_.size()];
    const Tensor zeros(port.type.dtype, port.type.shape.bind(program_.binding).sizes());
    if (v >= 0 && on_device(v) && !memory_.is_taken_over(v)) uploads_.write(v, zeros);
    host_states_.push_back(v < 0 || !on_device(v) ? zeros : Tensor());
  }
  if (sibling) take_weights(*sibling);
  if (options_.poison) make_guards();
  device_->check("preparing the program");
  if ((options_.webgpu.schedule_report || options_.dispatch_report) && !nested_) {
    plan_end_copies();
    log(LogLevel::kReport, schedule_text());
  }
  if (options_.webgpu.attention_alias_report && !nested_) log(LogLevel::kReport, attention_alias_text());
}

std::string WebGpuProgram::attention_alias_text() const {
  std::string out;
  for (const Step& s : program_.steps) {
    const auto* d = std::get_if<Dispatch>(&s.work);
    if (d == nullptr || s.name != "attention") continue;
    for (const Operand& written : d->operands) {
      if (!written.write) continue;
      const Place place = memory_.place(written.value);
      const auto bytes = [&](int32_t v) {
        return static_cast<uint64_t>(storage_bytes(value(v).storage, value(v).type));
      };
      std::string shared;
      for (const Operand& read : d->operands) {
        const Place other = memory_.place(read.value);
        if (!read.write && other.buffer == place.buffer && other.offset < place.offset + bytes(written.value) &&
            place.offset < other.offset + bytes(read.value))
          shared += str(shared.empty() ? "" : ", ", value(read.value).label);
      }
      out +=
          str("attention ", s.node, ": ", value(written.value).label, " lies in buffer ", place.buffer, " from byte ",
              place.offset, " on and shares bytes with ", shared.empty() ? "no operand" : shared, "\n");
    }
  }
  return out;
}

// By name, those of loops included.
void WebGpuProgram::count_steps(std::map<std::string, int64_t>& counts, int64_t& steps, int64_t& host) const {
  for (const Step& s : program_.steps) {
    ++counts[s.name];
    ++steps;
    host += std::holds_alternative<HostCall>(s.work) ? 1 : 0;
  }
  for (const ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) region->count_steps(counts, steps, host);
}

std::string WebGpuProgram::schedule_text() const {
  std::map<std::string, int64_t> counts;
  int64_t steps = 0, host = 0;
  count_steps(counts, steps, host);
  // New states that could not be computed in their place.
  for (const EndCopy& c : end_copies_) counts["buffer_copy"] += c.through_host ? 0 : 1;
  const auto mib = [](int64_t bytes) { return std::round(static_cast<double>(bytes) / (1 << 20) * 1000) / 1000; };
  std::string out =
      str("schedule: ", steps, " steps, ", host, " on the host, ", program_.static_steps.size(), " once; arena ",
          mib(plan_.arena_bytes), " MiB, inputs, outputs and states ", mib(plan_.persistent_bytes),
          " MiB; fft: ", counts["fft_gpu"], " on the GPU, ", counts["fft_host"], " on the host\n");
  std::erase_if(counts, [](const auto& c) { return c.second == 0; });
  std::vector<std::vector<std::string>> rows = {{"step", "count"}};
  for (const auto& [name, n] : counts) rows.push_back({name, str(n)});
  return out + table_text(rows);
}

WebGpuProgram::ReadyStep WebGpuProgram::ready(Step& step) {
  ReadyStep r{.step = &step};
  if (const auto* d = std::get_if<Dispatch>(&step.work)) r.dispatch = static_cast<int64_t>(dispatches_.add(step, *d));
  if (auto* h = std::get_if<HostCall>(&step.work)) {
    if (options_.webgpu.no_host_steps) refuse_host_step(step, *h);
    r.host = static_cast<int64_t>(host_calls_.size());
    host_calls_.push_back({h, std::vector<int64_t>(h->inputs.size()), std::vector<Tensor>(h->inputs.size())});
  }
  if (const auto* loop = std::get_if<Loop>(&step.work)) {
    r.loop = static_cast<int64_t>(loops_.size());
    loops_.push_back({.loop = loop});
    size_t outputs = 0;
    for (const auto& region : loop->regions) {
      outputs = std::max(outputs, region->outputs.size());
      loops_.back().regions.push_back(
          std::make_unique<WebGpuProgram>(std::move(*region), device_, options_, &commands_));
    }
    loops_.back().nothing.assign(outputs, false);
    if (loop->kind == Loop::Kind::kIf) {
      const TensorType& type = value(loop->inputs[0]).type;
      loops_.back().predicate = Tensor(type.dtype, type.shape.sizes());
    }
  }
  return r;
}

void WebGpuProgram::refuse_host_step(const Step& step, const HostCall& call) const {
  const auto types = [&](const std::vector<int32_t>& values) {
    std::string out;
    for (const int32_t v : values)
      if (v >= 0) out += str(out.empty() ? "" : ", ", value(v).type);
    return out;
  };
  fail(ErrorKind::kUnsupported,
       str("No kernel of the GPU runs ", step.node, " (", step.op->name, " of ", types(call.inputs), " to ",
           types(call.outputs), ")", step.origin.empty() ? "" : str(", from '", step.origin, "'"),
           ", and no_host_steps is set: without it ", call.kernel,
           " runs it on the host, and the cpu device runs all."));
}

DeviceStats WebGpuProgram::device_stats() const {
  DeviceStats sum = stats_;
  for (const ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) {
      const DeviceStats s = region->device_stats();
      sum.submits += s.submits;
      sum.dispatches += s.dispatches;
      sum.host_steps += s.host_steps;
      sum.bytes_up += s.bytes_up;
      sum.bytes_down += s.bytes_down;
      sum.parameter_writes += s.parameter_writes;
      sum.pipelines += s.pipelines;
      sum.buffers += s.buffers;
    }
  return sum;
}

// ---- what the runtime sets ----

void WebGpuProgram::set_param(size_t index, const Tensor& value) {
  params_[index] = value;
  param_changed_[index] = true;
  params_stale_ = true;
  for (auto* steps : {&static_ready_, &ready_})
    for (ReadyStep& r : *steps)
      if (auto* h = std::get_if<HostCall>(&r.step->work))
        for (const auto& [to, from] : h->params)
          if (from == index) h->program->set_param(to, value);
  const std::string& name = program_.manifest.params[index].name;
  for (const ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions)
      for (size_t i = 0; i < region->params_.size(); ++i)
        if (region->program_.manifest.params[i].name == name) region->set_param(i, value);
}

void WebGpuProgram::set_input(size_t index, const Tensor& value) {
  Input& input = inputs_[index];
  const std::span<const std::byte> bytes = value.bytes();
  // That a tensor is the same object says nothing of its bytes, which a caller may write through a span they got
  // before: large ones are the same only where nobody can, small ones are compared.
  const bool small = bytes.size() <= kSmallInputBytes;
  const uint64_t id = value.fixed_id();
  const bool same = input.uploaded && !input.fed && !options_.webgpu.force_input_upload &&
                    ((id != 0 && id == input.fixed_id) || (small && std::ranges::equal(input.retained, bytes)));
  input.tensor = value;
  input.fixed_id = id;
  input.fed = false;
  if (same) return;
  input.uploaded = false;
  if (small)
    input.retained.assign(bytes.begin(), bytes.end());
  else
    input.retained.clear();
}

void WebGpuProgram::set_feed(size_t output, size_t input) {
  feeds_.emplace_back(output, input);
  end_copies_stale_ = true;
}

Tensor WebGpuProgram::read_input(size_t index) {
  const Input& input = inputs_[index];
  return input.fed ? read_value(input.value) : input.tensor.clone();
}

Tensor WebGpuProgram::read_state(size_t index) {
  const int32_t v = program_.state_values[index];
  return v < 0 || !on_device(v) ? host_states_[index].clone() : read_value(v);
}

void WebGpuProgram::set_state(size_t index, const Tensor& tensor) {
  const int32_t v = program_.state_values[index];
  if (v < 0 || !on_device(v))
    host_states_[index] = tensor.clone();
  else
    uploads_.write(v, tensor);
  device_->check("writing a state");
}

bool WebGpuProgram::shares_state(size_t index, const DeviceProgram& with) const {
  const auto* other = dynamic_cast<const WebGpuProgram*>(&with);
  if (other == nullptr) return false;
  const int32_t v = program_.state_values[index], theirs = other->program_.state_values[index];
  return v >= 0 && theirs >= 0 && on_device(v) && other->on_device(theirs) &&
         memory_.same_place(v, other->memory_, theirs);
}

// Weights that lie where the sibling has them are there already, and so is what was computed of them.
void WebGpuProgram::take_weights(const WebGpuProgram& sibling) {
  for (size_t i = 0; i < params_.size(); ++i) set_param(i, sibling.params_[i]);
  if (sibling.params_stale_) return;
  std::fill(param_changed_.begin(), param_changed_.end(), false);
  for (size_t v = 0; v < program_.values.size(); ++v)
    if (program_.values[v].source == Source::kParam && program_.problem.values[v].view_of < 0 &&
        on_device(static_cast<int32_t>(v)) && !memory_.is_taken_over(static_cast<int32_t>(v)))
      param_changed_[static_cast<size_t>(program_.values[v].index)] = true;
  for (size_t s = 0; s < program_.static_steps.size(); ++s) {
    const auto* d = std::get_if<Dispatch>(&program_.static_steps[s].work);
    static_done_[s] = d != nullptr && std::ranges::all_of(d->operands, [&](const Operand& o) {
                        return !o.write || memory_.is_taken_over(root(o.value));
                      });
  }
}

void WebGpuProgram::upload_constants() {
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const auto id = static_cast<int32_t>(v);
    if (value(id).source == Source::kConstant && program_.problem.values[v].view_of < 0 && on_device(id))
      uploads_.write(id, value(id).constant);
  }
}

void WebGpuProgram::write_dim_values() {
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const ProgramValue& p = program_.values[v];
    if (p.source != Source::kDimValue) continue;
    const int64_t size = p.dim.bind(active_ ? *active_ : program_.binding).value();
    require(size <= INT32_MAX, "Size ", p.dim, " (", size, ") does not fit i32.");
    host_[v] = Tensor::i32(p.type.shape.sizes(), {static_cast<int32_t>(size)});
    if (on_device(static_cast<int32_t>(v))) uploads_.write(static_cast<int32_t>(v), host_[v]);
  }
}

// ---- what the host has ----

// Roots whose bytes the host has: inputs, weights, constants, and what host steps compute.
void WebGpuProgram::find_host_roots() {
  host_root_.assign(program_.values.size(), false);
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const Source s = program_.values[v].source;
    host_root_[v] = s == Source::kInput || s == Source::kParam || s == Source::kConstant || s == Source::kDimValue ||
                    (s == Source::kState && program_.values[v].storage == Storage::kHost);
  }
  for (const auto* steps : {&program_.static_steps, &program_.steps})
    for (const Step& s : *steps)
      if (const auto* h = std::get_if<HostCall>(&s.work))
        for (const int32_t v : h->outputs) host_root_[static_cast<size_t>(v)] = true;
}

bool WebGpuProgram::is_on_host(int32_t v) const {
  const int32_t r = root(v);
  if (value(r).source == Source::kInput && inputs_[static_cast<size_t>(value(r).index)].fed) return false;
  return host_root_[static_cast<size_t>(r)];
}

// A value whose root the host has.
const Tensor& WebGpuProgram::host_root(int32_t v) const {
  const ProgramValue& of = value(v);
  const auto index = static_cast<size_t>(of.index);
  switch (of.source) {
    case Source::kInput: return inputs_[index].tensor;
    case Source::kParam: return params_[index];
    case Source::kConstant: return of.constant;
    case Source::kState: return host_states_[index];
    default: return host_[static_cast<size_t>(v)];
  }
}

std::span<const std::byte> WebGpuProgram::host_bytes(int32_t v) const {
  const plan::Root r = plan::root_of(program_.problem, v);
  const std::span<const std::byte> bytes = host_root(r.value).bytes();
  if (r.value == v) return bytes;
  const ProgramValue& of = value(r.value);
  const auto offset = of.storage == Storage::kHost
                          ? static_cast<size_t>(value(v).host_offset_bytes)
                          : static_cast<size_t>(r.offset_bytes / storage_element_bytes(of.storage, of.type.dtype)) *
                                size_of(of.type.dtype);
  const auto size = static_cast<size_t>(value(v).type.size_bytes());
  return size == 0 ? bytes.first(0) : bytes.subspan(offset, size);
}

Tensor WebGpuProgram::read_value(int32_t v) {
  Tensor out(value(v).type.dtype, value(v).type.shape.sizes());
  if (elements(v) > 0) read_value(v, out);
  return out;
}
// What is encoded, then the value as it is now.
void WebGpuProgram::read_value(int32_t v, Tensor& to) {
  readback_.clear();
  readback_.add(v);
  map_readback();
  readback_.read(0, to);
  readback_.unmap();
}

// ---- the plan ----

StepInfo WebGpuProgram::describe(const Step& step) const {
  int32_t v = -1;
  std::string kernel;
  if (const auto* d = std::get_if<Dispatch>(&step.work)) {
    for (const Operand& o : d->operands)
      if (o.write && v < 0) v = o.value;
    kernel = str("webgpu/", d->kernel.kernel);
  } else if (const auto* h = std::get_if<HostCall>(&step.work)) {
    v = h->outputs.front();
    kernel = h->kernel;
  } else {
    for (const int32_t out : std::get<Loop>(step.work).outputs)
      if (out >= 0 && v < 0) v = out;
    kernel = "webgpu/loop";
  }
  const bool in_arena = program_.problem.values[static_cast<size_t>(v)].region == plan::Region::kActivation;
  return {step.node, step.origin,   std::string(step.op->name),
          kernel,    value(v).type, in_arena && on_device(v) ? plan_.slots[static_cast<size_t>(v)].offset : -1,
          step.name};
}

PlanInfo WebGpuProgram::plan() const {
  PlanInfo info;
  for (const int32_t s : plan_.order) {
    const Step& step = program_.steps[static_cast<size_t>(s)];
    const auto* d = std::get_if<Dispatch>(&step.work);
    if (d != nullptr && d->is_copy && memory_.place(d->operands[0].value) == memory_.place(d->operands[1].value))
      continue;  // nothing is done: both are in one place
    info.steps.push_back(describe(step));
  }
  for (const Step& step : program_.static_steps) info.static_steps.push_back(describe(step));
  info.arena_bytes = plan_.arena_bytes;
  info.largest_live_bytes = plan_.largest_live_bytes;
  info.unshared_bytes = plan_.unshared_bytes;
  info.persistent_bytes = plan_.persistent_bytes;
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const ProgramValue& p = program_.values[v];
    const int64_t bytes = program_.problem.values[v].size_bytes;
    if (program_.problem.values[v].view_of >= 0) {
      ++info.views;
      continue;
    }
    if (p.source == Source::kParam) info.param_bytes += bytes;
    if (p.source == Source::kConstant) info.constant_bytes += bytes;
    if (p.source == Source::kStatic) info.static_bytes += bytes;
  }
  info.in_place_results = static_cast<int64_t>(plan_.shared.size());
  return info;
}

std::unique_ptr<DeviceProgram> make_program(Program program, std::shared_ptr<Device> device,
                                            const CompileOptions& options, const Sibling& sibling) {
  const auto* other = dynamic_cast<const WebGpuProgram*>(sibling.program);
  if (other) other->check_device();
  return std::make_unique<WebGpuProgram>(std::move(program), std::move(device), options, nullptr, other,
                                         sibling.shares_states);
}

}  // namespace rlx::webgpu
