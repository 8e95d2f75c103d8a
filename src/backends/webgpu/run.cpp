// One run: what changed is uploaded, the schedule encoded, outputs read back in the same submission, states and fed
// inputs copied on the device (spec 40, 5).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/webgpu/executor.h"

namespace rlx::webgpu {

void WebGpuProgram::run(std::vector<StepTrace>* trace, const std::vector<bool>* wanted) {
  try {
    device_->check("starting a run");
    is_traced_ = trace != nullptr;
    inner_trace_ = nullptr;
    if (is_traced_) begin_trace();
    guarded_.clear();
    if (has_failed_ && !nested_) forget_index_errors();
    has_failed_ = false;
    if (params_stale_) prepare_weights();
    upload_inputs();
    if (options_.poison) poison_arena();
    for (size_t t = 0; t < ready_.size(); ++t) {
      run_step(ready_[t]);
      if (options_.poison) poison_dead(t);
    }
    finish(wanted);
    if (is_traced_) end_trace(*trace);
  } catch (...) {
    has_failed_ = true;
    if (!nested_) forget_weights();
    commands_.drop();
    readback_.unmap();
    throw;
  }
}

// ---- before the steps ----

void WebGpuProgram::prepare_weights() {
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const auto id = static_cast<int32_t>(v);
    const ProgramValue& p = value(id);
    if (p.source != Source::kParam || !param_changed_[static_cast<size_t>(p.index)] || !on_device(id)) continue;
    uploads_.write(id, params_[static_cast<size_t>(p.index)]);
  }
  device_->check("uploading weights");
  in_static_ = true;
  for (size_t s = 0; s < static_ready_.size(); ++s) {
    const auto& params = static_ready_[s].step->params;
    if (static_done_[s] &&
        std::none_of(params.begin(), params.end(), [&](int32_t p) { return param_changed_[static_cast<size_t>(p)]; }))
      continue;
    run_step(static_ready_[s]);
    static_done_[s] = true;
  }
  in_static_ = false;
  std::fill(param_changed_.begin(), param_changed_.end(), false);
  params_stale_ = false;
}

void WebGpuProgram::upload_inputs() {
  for (Input& input : inputs_) {
    if (input.value < 0 || input.uploaded || input.fed || !on_device(input.value)) continue;
    uploads_.write(input.value, input.tensor);
    input.uploaded = true;
  }
}

// ---- steps ----

void WebGpuProgram::run_step(ReadyStep& r) {
  try {
    if (options_.poison && r.dispatch >= 0) {
      poison_workgroups();
      guard(r);
    }
    if (is_traced_)
      run_traced(r);
    else
      execute(r);
    if (options_.poison && r.dispatch >= 0) collect_guards(r);
  } catch (Error& e) {
    e.add_context(str("running ", r.step->node, " (", r.step->name, ")",
                      r.step->origin.empty() ? "" : str(", from '", r.step->origin, "'")));
    throw;
  }
}

void WebGpuProgram::execute(ReadyStep& r) {
  if (r.loop >= 0) {
    run_loop(loops_[static_cast<size_t>(r.loop)]);
    return;
  }
  if (r.host >= 0) {
    run_on_host(host_calls_[static_cast<size_t>(r.host)]);
    return;
  }
  const ReadyDispatch& d = dispatches_[static_cast<size_t>(r.dispatch)];
  if (d.x != 0 && d.y != 0 && d.z != 0) commands_.dispatch(d);
}

// To a step of the host: where the host has them, or what is read back of the device.
void WebGpuProgram::lend_inputs(ReadyHostCall& ready) {
  const HostCall& call = *ready.call;
  readback_.clear();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int32_t v = call.inputs[i];
    ready.items[i] = -1;
    if (is_on_host(v) || elements(v) == 0) continue;
    for (size_t j = 0; j < i && ready.items[i] < 0; ++j)
      if (call.inputs[j] == v) ready.items[i] = ready.items[j];
    if (ready.items[i] < 0) ready.items[i] = static_cast<int64_t>(readback_.add(v));
  }
  if (!readback_.empty()) map_readback();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int32_t v = call.inputs[i];
    const TensorType& type = value(v).type;
    const bool is_read = ready.items[i] >= 0;
    const std::span<const std::byte> bytes = is_read || elements(v) == 0 ? std::span<const std::byte>() : host_bytes(v);
    if (!is_read && reinterpret_cast<uintptr_t>(bytes.data()) % size_of(type.dtype) == 0) {
      call.program->lend_input(i, bytes.data());
      continue;
    }
    Tensor& read = ready.read[i];
    if (read.num_elements() == 0) read = Tensor(type.dtype, type.shape.sizes());
    if (is_read)
      readback_.read(static_cast<size_t>(ready.items[i]), read);
    else
      std::ranges::copy(bytes, read.mutable_bytes().data());
    call.program->lend_input(i, read.bytes().data());
  }
  readback_.unmap();
}

void WebGpuProgram::run_on_host(ReadyHostCall& ready) {
  HostCall& call = *ready.call;
  lend_inputs(ready);
  call.program->run();
  ++stats_.host_steps;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const int32_t v = call.outputs[i];
    host_[static_cast<size_t>(v)] = call.program->output(i);
    if (!on_device(v)) continue;
    submit();  // what was encoded may still read the old bytes
    uploads_.write(v, host_[static_cast<size_t>(v)]);
  }
}

void WebGpuProgram::submit() {
  try {
    commands_.submit("running the schedule");
  } catch (Error& e) {
    name_faulty_step(e);
    throw;
  }
  uploads_.submitted();
}

// A submission is refused as a whole; which of its dispatches is at fault shows when each is tried alone.
void WebGpuProgram::name_faulty_step(Error& error) {
  for (size_t i = 0; i < dispatches_.size() && !device_->lost(); ++i) {
    const ReadyDispatch& d = dispatches_[i];
    if (d.x == 0 || d.y == 0 || d.z == 0 || !commands_.is_faulty(d)) continue;
    error.add_context(str("running ", d.step->node, " (", d.step->name, ")"));
    return;
  }
}

// What is encoded runs, then the items of the readback are copied.
void WebGpuProgram::map_readback() {
  readback_.encode(commands_);
  submit();
  readback_.map();
}

// ---- after the steps ----

void WebGpuProgram::plan_end_copies() {
  end_copies_.clear();
  for (size_t u = 0; u < program_.updates.size(); ++u)
    if (!plan_.update_in_place[u])
      end_copies_.push_back({.from = program_.updates[u].value, .to = program_.updates[u].state});
  for (const auto& [output, input] : feeds_)
    end_copies_.push_back(
        {.from = program_.outputs[output], .to = inputs_[input].value, .input = static_cast<int64_t>(input)});
  std::erase_if(end_copies_, [&](const EndCopy& c) { return elements(c.from) == 0; });
  uint64_t staged = 0;
  for (EndCopy& c : end_copies_) {
    c.through_host = c.to < 0 || !on_device(c.from) || !on_device(c.to) ||
                     value(c.from).storage != value(c.to).storage || memory_.place(c.from).offset % 4 != 0;
    if (c.through_host) continue;
    c.bytes = static_cast<uint64_t>(storage_bytes(value(c.to).storage, value(c.to).type));
    const bool overwritten = std::any_of(end_copies_.begin(), end_copies_.end(), [&](const EndCopy& other) {
      return other.to >= 0 && root(other.to) == root(c.from);
    });
    if (!overwritten && memory_.place(c.from).buffer != memory_.place(c.to).buffer) continue;
    c.staged = static_cast<int64_t>(staged);
    staged += round_up(c.bytes, 16);
  }
  if (staged > 0) {
    end_staging_ = device_->make_buffer(staged, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, "new states");
    ++stats_.buffers;
  }
  end_copies_stale_ = false;
  set_end_ranges();
}

// All bytes; of a fed input those of the rows in use, so that the others stay what they were (spec 40, 5).
void WebGpuProgram::set_end_ranges() {
  for (EndCopy& c : end_copies_) {
    c.ranges.assign(1, {0, c.bytes});
    if (!active_ || c.input < 0 || c.through_host) continue;
    const ProgramValue& to = value(c.to);
    const std::vector<int64_t> full = to.type.shape.sizes(), used = to.symbolic.shape.bind(*active_).sizes();
    size_t axis = 0;  // whose rows are cut
    while (axis < full.size() && used[axis] == full[axis]) ++axis;
    if (axis == full.size()) continue;
    const auto element = static_cast<uint64_t>(storage_element_bytes(to.storage, to.type.dtype));
    uint64_t outer = 1, row = element;
    for (size_t i = 0; i < axis; ++i) outer *= static_cast<uint64_t>(full[i]);
    for (size_t i = axis + 1; i < full.size(); ++i) row *= static_cast<uint64_t>(full[i]);
    const uint64_t stride = row * static_cast<uint64_t>(full[axis]), bytes = row * static_cast<uint64_t>(used[axis]);
    if (stride % 4 != 0 || bytes % 4 != 0) continue;  // WebGPU copies whole words: a half more would be as wrong
    c.ranges.clear();
    for (uint64_t i = 0; i < outer && bytes > 0; ++i) c.ranges.push_back({i * stride, bytes});
  }
}

void WebGpuProgram::encode_end_copies() {
  const auto copy = [&](const EndCopy& c, bool to_staging) {
    const Place from = memory_.place(c.from), to = memory_.place(c.to);
    const auto at = static_cast<uint64_t>(std::max<int64_t>(c.staged, 0));
    for (const auto& [offset, bytes] : c.ranges)
      if (to_staging)
        commands_.copy(memory_.buffer(from.buffer), from.offset + offset, end_staging_.get(), at + offset, bytes);
      else if (c.staged >= 0)
        commands_.copy(end_staging_.get(), at + offset, memory_.buffer(to.buffer), to.offset + offset, bytes);
      else
        commands_.copy(memory_.buffer(from.buffer), from.offset + offset, memory_.buffer(to.buffer), to.offset + offset,
                       bytes);
  };
  for (const EndCopy& c : end_copies_)
    if (c.staged >= 0) copy(c, true);
  for (const EndCopy& c : end_copies_) {
    if (c.through_host) continue;
    copy(c, false);
    if (c.input >= 0) inputs_[static_cast<size_t>(c.input)].fed = true;
  }
}

// A new state, or a fed input, that came through the host.
void WebGpuProgram::take(EndCopy& c) {
  if (c.input < 0) {
    if (on_device(c.to))
      uploads_.write(c.to, c.kept);
    else
      std::ranges::copy(c.kept.bytes(), host_states_[static_cast<size_t>(value(c.to).index)].mutable_bytes().data());
    return;
  }
  Input& input = inputs_[static_cast<size_t>(c.input)];
  std::swap(c.kept, c.taken);  // of the input that it was, the bytes may be the caller's
  input.tensor = c.taken;
  input.fixed_id = 0;
  input.uploaded = false;
  input.retained.clear();
}

void WebGpuProgram::add_outputs(const std::vector<bool>* wanted) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int32_t v = program_.outputs[i];
    output_items_[i] = -1;
    if ((wanted != nullptr && !(*wanted)[i]) || elements(v) == 0 || options_.webgpu.skip_readback || is_on_host(v))
      continue;
    for (size_t j = 0; j < i && output_items_[i] < 0; ++j)
      if (program_.outputs[j] == v) output_items_[i] = output_items_[j];
    if (output_items_[i] < 0) output_items_[i] = static_cast<int64_t>(readback_.add(v));
  }
}

// Of the program and of those in its loops: what was to be computed of weights may not have been submitted, and weights
// that were not right are checked again.
void WebGpuProgram::forget_weights() {
  static_done_.assign(static_done_.size(), false);
  params_stale_ = true;
  for (ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) region->forget_weights();
}

void WebGpuProgram::forget_index_errors() {
  if (const int32_t v = program_.index_errors; v >= 0) uploads_.write(v, value(v).constant);
  for (ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) region->forget_index_errors();
}

void WebGpuProgram::read_index_errors(Readback& readback) {
  index_errors_item_ = -1;
  if (const int32_t v = program_.index_errors; v >= 0) {
    const Place place = memory_.place(v);
    index_errors_item_ =
        static_cast<int64_t>(readback.add_raw(memory_.buffer(place.buffer), place.offset, Program::kIndexWords * 4));
  }
  for (ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) region->read_index_errors(readback);
}

void WebGpuProgram::throw_bad_index(const Readback& readback) {
  for (ReadyLoop& loop : loops_)
    for (const auto& region : loop.regions) region->throw_bad_index(readback);
  if (index_errors_item_ < 0) return;
  std::array<int32_t, Program::kIndexWords> found;
  std::memcpy(found.data(), readback.data(static_cast<size_t>(index_errors_item_)), sizeof found);
  if (found[0] == 0) return;
  const Program::IndexCheck& check = program_.index_checks[static_cast<size_t>(found[0] - 1)];
  Error error(ErrorKind::kRuntime, check.complaint(found[2], static_cast<uint32_t>(found[1]), found[3]));
  error.add_context(
      str("running ", check.node, " (", check.op, ")", check.origin.empty() ? "" : str(", from '", check.origin, "'")));
  throw error;
}

// Its bytes count as handed out, so that fixed_id() tells whether the caller has sealed them.
Tensor WebGpuProgram::output_tensor(int32_t v) const {
  Tensor t(value(v).type.dtype, value(v).type.shape.sizes());
  t.mutable_bytes();
  return t;
}

void WebGpuProgram::finish(const std::vector<bool>* wanted) {
  if (end_copies_stale_) plan_end_copies();
  readback_.clear();
  for (size_t i = 0; i < outputs_.size(); ++i)  // a sealed one stays the caller's
    if (outputs_[i].fixed_id() != 0) outputs_[i] = output_tensor(program_.outputs[i]);
  add_outputs(wanted);
  // What the host has is taken now: fed inputs count as the device's in a moment.
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int32_t v = program_.outputs[i];
    if ((wanted != nullptr && !(*wanted)[i]) || elements(v) == 0 || !is_on_host(v)) continue;
    std::ranges::copy(host_bytes(v), outputs_[i].mutable_bytes().data());
  }
  for (EndCopy& c : end_copies_) {
    if (!c.through_host) continue;
    if (c.kept.num_elements() == 0) c.kept = Tensor(value(c.from).type.dtype, value(c.from).type.shape.sizes());
    c.item = is_on_host(c.from) ? -1 : static_cast<int64_t>(readback_.add(c.from));
    if (c.item < 0) std::ranges::copy(host_bytes(c.from), c.kept.mutable_bytes().data());
  }
  if (options_.poison && !guarded_.empty())
    guards_item_ = static_cast<int64_t>(readback_.add_raw(guards_.get(), 0, guarded_.size() * kGuardBytes));
  queries_item_ = -1;
  if (is_traced_) read_timestamps();
  if (!nested_) read_index_errors(readback_);
  readback_.encode(commands_);
  encode_end_copies();
  if (!nested_ || !readback_.empty()) submit();
  if (!readback_.empty()) {
    readback_.map();
    if (!nested_) throw_bad_index(readback_);
    if (options_.poison && !guarded_.empty()) check_guards();
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (output_items_[i] >= 0) readback_.read(static_cast<size_t>(output_items_[i]), outputs_[i]);
    for (EndCopy& c : end_copies_)
      if (c.through_host && c.item >= 0) readback_.read(static_cast<size_t>(c.item), c.kept);
    if (queries_item_ >= 0)
      std::memcpy(timestamps_.data(), readback_.data(static_cast<size_t>(queries_item_)), timestamps_.size() * 8);
    readback_.unmap();
  } else if (options_.webgpu.skip_readback) {
    device_->wait();
  }
  for (EndCopy& c : end_copies_)
    if (c.through_host) take(c);
}

}  // namespace rlx::webgpu
