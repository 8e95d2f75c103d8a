// Runs a lowered program: buffers, pipelines and bind groups are made once; a run uploads what changed, encodes the
// schedule and reads the outputs back in the same submission (spec 40, 5).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backends/webgpu/program.h"
#include "core/convert.h"
#include "ops/cost.h"
#include "rlx/log.h"

namespace rlx::webgpu {

namespace {

constexpr uint64_t kWeightsBufferBytes = uint64_t{256} << 20;  // small weights share buffers of this size
constexpr uint64_t kSmallInputBytes = 64 << 10;                // compared with what was uploaded last

uint64_t round_up(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// The dtype whose bytes a storage holds.
DType stored_dtype(Storage storage, DType declared) {
  switch (storage) {
    case Storage::kF32: return DType::F32;
    case Storage::kF16: return DType::F16;
    case Storage::kI32: return DType::I32;
    case Storage::kU32: return DType::U32;
    default: return declared;
  }
}

// Where a value's bytes are.
struct Place {
  int32_t buffer = -1;
  uint64_t offset = 0;
};

// A dispatch ready to be encoded.
struct ReadyDispatch {
  const Step* step = nullptr;
  const Pipeline* pipeline = nullptr;
  BindGroup group;
  std::vector<uint32_t> params;  // bases filled in, full extent
  uint32_t params_offset = 0;    // in the parameter buffer
  uint32_t x = 1, y = 1, z = 1;
};

// A step of a schedule: a dispatch, or a host call of the program.
struct ReadyStep {
  Step* step = nullptr;
  std::optional<ReadyDispatch> dispatch;
};

class WebGpuProgram : public DeviceProgram {
 public:
  WebGpuProgram(Program program, std::shared_ptr<Device> device, const CompileOptions& options)
      : device_(std::move(device)),
        api_(device_->api()),
        options_(options),
        limits_(device_->limits()),
        program_(std::move(program)),
        inputs_(program_.manifest.inputs.size()),
        params_(program_.manifest.params.size()),
        param_changed_(program_.manifest.params.size(), true),
        fed_(program_.manifest.inputs.size(), -1) {
    if (options_.webgpu.max_binding_bytes > 0)
      limits_.max_binding_bytes = std::min<uint64_t>(limits_.max_binding_bytes, options_.webgpu.max_binding_bytes);
    if (options_.webgpu.max_buffer_bytes > 0)
      limits_.max_buffer_bytes = std::min<uint64_t>(limits_.max_buffer_bytes, options_.webgpu.max_buffer_bytes);
    plan_ = plan::make_plan(program_.problem, plan_options());
    host_.resize(program_.values.size());
    find_host_roots();
    make_buffers();
    for (Step& s : program_.static_steps) static_ready_.push_back(ready(s));
    for (const int32_t s : plan_.order)
      if (Step& step = program_.steps[static_cast<size_t>(s)]; !is_idle(step)) ready_.push_back(ready(step));
    make_pipelines();
    upload_constants();
    write_dim_values();
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramValue& v = value(program_.outputs[i]);
      outputs_.emplace_back(v.type.dtype, v.type.shape.sizes());
    }
    for (const int32_t v : program_.state_values) {
      const Port& port = program_.manifest.states[host_states_.size()];
      const bool on_host = v < 0 || value(v).storage == Storage::kHost;
      host_states_.push_back(on_host ? Tensor(port.type.dtype, port.type.shape.bind(program_.binding).sizes())
                                     : Tensor());
    }
    zero_states();
  }

  void set_param(size_t index, const Tensor& value) override {
    params_[index] = value;
    param_changed_[index] = true;
    params_stale_ = true;
    for (auto* steps : {&static_ready_, &ready_})
      for (ReadyStep& r : *steps)
        if (auto* h = std::get_if<HostCall>(&r.step->work))
          for (const auto& [to, from] : h->params)
            if (from == index) h->program->set_param(to, value);
  }

  void set_input(size_t index, const Tensor& value) override {
    Input& input = inputs_[index];
    fed_[index] = -1;
    const bool small = value.bytes().size() <= kSmallInputBytes;
    const bool same = input.uploaded && small && !options_.webgpu.force_input_upload &&
                      input.retained.size() == value.bytes().size() &&
                      std::memcmp(input.retained.data(), value.bytes().data(), value.bytes().size()) == 0;
    input.tensor = value;
    if (same) return;
    input.uploaded = false;
    if (small)
      input.retained.assign(value.bytes().begin(), value.bytes().end());
    else
      input.retained.clear();
  }

  void set_feed(size_t output, size_t input) override { feeds_.emplace_back(output, input); }

  bool set_active_sizes(const std::optional<DimBinding>& sizes) override {
    if (!sizes) return true;
    if (!program_.state_values.empty())
      fail(ErrorKind::kUnsupported, "The webgpu device has no active extent for graphs with states yet.");
    return false;
  }

  void run(std::vector<StepTrace>* trace) override {
    try {
      run_all(trace);
    } catch (Error& e) {
      encoder_ = {};
      pass_ = {};
      throw;
    }
  }

  const Tensor& output(size_t index) override { return outputs_[index]; }

  Tensor read_input(size_t index) override {
    if (fed_[index] < 0) return inputs_[index].tensor.clone();
    return read_value(input_value(index));
  }

  Tensor read_state(size_t index) override {
    const int32_t v = program_.state_values[index];
    if (v < 0 || value(v).storage == Storage::kHost) return host_states_[index].clone();
    return read_value(v);
  }
  void set_state(size_t index, const Tensor& tensor) override {
    const int32_t v = program_.state_values[index];
    if (v < 0 || value(v).storage == Storage::kHost)
      host_states_[index] = tensor.clone();
    else
      upload(v, tensor);
    device_->check("writing a state");
  }

  PlanInfo plan() const override {
    PlanInfo info;
    for (const int32_t s : plan_.order)
      if (const Step& step = program_.steps[static_cast<size_t>(s)]; !is_idle(step))
        info.steps.push_back(describe(step));
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

  DeviceStats device_stats() const override { return stats_; }

 private:
  struct Input {
    Tensor tensor;
    std::vector<std::byte> retained;  // what was uploaded last, where that is little
    bool uploaded = false;
  };

  const ProgramValue& value(int32_t v) const { return program_.values[static_cast<size_t>(v)]; }
  bool on_device(int32_t v) const { return value(v).storage != Storage::kHost; }
  int64_t elements(int32_t v) const { return value(v).type.shape.num_elements(); }
  int32_t root(int32_t v) const { return plan::root_of(program_.problem, v).value; }

  plan::Options plan_options() const {
    const auto schedule = options_.schedule == ScheduleOrder::kBest     ? plan::Schedule::kBest
                          : options_.schedule == ScheduleOrder::kGreedy ? plan::Schedule::kGreedy
                                                                        : plan::Schedule::kSource;
    const auto alignment = std::max<int64_t>(limits_.binding_alignment, 16);
    return {.alignment = alignment,
            .schedule = schedule,
            .no_reuse = options_.no_reuse,
            .in_place = options_.in_place,
            .verify = options_.verify_plan,
            .page_bytes = static_cast<int64_t>(limits_.max_buffer_bytes) / alignment * alignment};
  }

  StepInfo describe(const Step& step) const {
    int32_t v = -1;
    if (const auto* d = std::get_if<Dispatch>(&step.work)) {
      for (const Operand& o : d->operands)
        if (o.write && v < 0) v = o.value;
    } else {
      v = std::get<HostCall>(step.work).outputs.front();
    }
    const bool in_arena = program_.problem.values[static_cast<size_t>(v)].region == plan::Region::kActivation;
    StepInfo info{step.node, step.origin,   std::string(step.op->name),
                  "",        value(v).type, in_arena && on_device(v) ? plan_.slots[static_cast<size_t>(v)].offset : -1};
    if (const auto* d = std::get_if<Dispatch>(&step.work))
      info.kernel = str("webgpu/", d->kernel.kernel);
    else
      info.kernel = std::get<HostCall>(step.work).kernel;
    return info;
  }

  // ---- buffers ----

  int32_t add_buffer(uint64_t bytes, const std::string& label) {
    buffers_.push_back(device_->make_buffer(round_up(std::max<uint64_t>(bytes, 256), 256),
                                            WGPUBufferUsage_Storage | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc,
                                            label));
    return static_cast<int32_t>(buffers_.size() - 1);
  }

  // A region of the plan as buffers no larger than the device's.
  std::vector<int32_t> add_pages(int64_t bytes, const std::string& label) {
    const int64_t page = plan_options().page_bytes;
    std::vector<int32_t> pages;
    for (int64_t at = 0; at < bytes; at += page)
      pages.push_back(add_buffer(static_cast<uint64_t>(std::min(page, bytes - at)), label));
    return pages;
  }

  void make_buffers() {
    const int64_t page = plan_options().page_bytes;
    const std::vector<int32_t> arena = add_pages(plan_.arena_bytes, "activations"),
                               persistent = add_pages(plan_.persistent_bytes, "inputs and outputs");
    zeros_ = add_buffer(256, "nothing");
    places_.resize(program_.values.size());
    int32_t weights = -1;
    uint64_t weights_at = 0;
    // Small weights share a buffer, large ones have their own.
    const auto add_weight = [&](uint64_t bytes) -> Place {
      const uint64_t shared = std::min(kWeightsBufferBytes, limits_.max_buffer_bytes);
      if (bytes > shared / 4) return {add_buffer(bytes, "weight"), 0};
      if (weights < 0 || weights_at + bytes > shared) {
        weights = add_buffer(std::min(shared, remaining_small_weights()), "weights");
        weights_at = 0;
      }
      const Place place{weights, weights_at};
      weights_at = round_up(weights_at + bytes, limits_.binding_alignment);
      return place;
    };
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const plan::Value& planned = program_.problem.values[v];
      const auto id = static_cast<int32_t>(v);
      if (planned.view_of >= 0 || !on_device(id)) continue;
      if (planned.size_bytes == 0) {
        places_[v] = {zeros_, 0};
        continue;
      }
      if (planned.region == plan::Region::kExternal) {
        small_weights_done_ = v;
        places_[v] = add_weight(static_cast<uint64_t>(planned.size_bytes));
        continue;
      }
      const int64_t offset = plan_.slots[v].offset;
      const auto& pages = planned.region == plan::Region::kActivation ? arena : persistent;
      if (pages.empty()) continue;  // nothing touches it
      places_[v] = {pages[static_cast<size_t>(offset / page)], static_cast<uint64_t>(offset % page)};
    }
    for (size_t v = 0; v < program_.values.size(); ++v)
      if (program_.problem.values[v].view_of >= 0 && on_device(static_cast<int32_t>(v))) {
        const plan::Root r = plan::root_of(program_.problem, static_cast<int32_t>(v));
        places_[v] = places_[static_cast<size_t>(r.value)];
        if (elements(static_cast<int32_t>(v)) > 0) places_[v].offset += static_cast<uint64_t>(r.offset_bytes);
      }
  }

  // How much the weights from here on need that fit a shared buffer: no more is reserved.
  uint64_t remaining_small_weights() const {
    uint64_t bytes = 0;
    for (size_t v = small_weights_done_; v < program_.values.size(); ++v) {
      const plan::Value& p = program_.problem.values[v];
      if (p.view_of < 0 && p.region == plan::Region::kExternal && on_device(static_cast<int32_t>(v)))
        bytes += round_up(static_cast<uint64_t>(p.size_bytes), limits_.binding_alignment);
    }
    return std::max<uint64_t>(bytes, 256);
  }

  // ---- dispatches ----

  struct Window {
    int32_t buffer = -1;
    uint64_t begin = 0, end = 0;  // bytes
  };

  // A copy onto itself.
  bool is_idle(const Step& step) const {
    const auto* d = std::get_if<Dispatch>(&step.work);
    if (d == nullptr || !d->is_copy) return false;
    const Place from = places_[static_cast<size_t>(d->operands[0].value)],
                to = places_[static_cast<size_t>(d->operands[1].value)];
    return from.buffer == to.buffer && from.offset == to.offset;
  }

  ReadyStep ready(Step& step) {
    ReadyStep r{.step = &step};
    if (auto* d = std::get_if<Dispatch>(&step.work)) {
      try {
        r.dispatch = bind(step, *d);
      } catch (Error& e) {
        e.add_context(str("preparing ", step.node, " (", step.name, ")"));
        throw;
      }
    }
    return r;
  }

  ReadyDispatch bind(const Step& step, const Dispatch& d) {
    ReadyDispatch r{.step = &step};
    PendingPipeline pending;
    pending.facts = kernel_facts(d.kernel);
    const KernelFacts& facts = pending.facts;
    RLX_ASSERT(facts.bindings.size() == d.operands.size() && "operands do not match the kernel's bindings");
    const size_t n = d.operands.size();
    std::vector<Window> windows(n);
    pending.uses.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const int32_t v = d.operands[i].value;
      const Place place = places_[static_cast<size_t>(v)];
      RLX_ASSERT(place.buffer >= 0);
      RLX_ASSERT(facts.bindings[i].writes == d.operands[i].write && "a kernel writes what the lowering reads");
      const auto bytes = std::max<uint64_t>(static_cast<uint64_t>(storage_bytes(value(v).storage, value(v).type)), 16);
      windows[i] = {place.buffer, place.offset / limits_.binding_alignment * limits_.binding_alignment,
                    round_up(place.offset + bytes, 16)};
    }
    share_bindings(d, facts, windows, pending.uses);
    for (size_t i = 0; i < n; ++i)
      if (windows[i].end - windows[i].begin > limits_.max_binding_bytes)
        fail(ErrorKind::kUnsupported,
             str("Kernel '", d.kernel.kernel, "' sees ", windows[i].end - windows[i].begin, " bytes of ",
                 value(d.operands[i].value).label, " at once; the GPU binds at most ", limits_.max_binding_bytes, "."));
    // Where each operand starts in its window.
    r.params = d.params.words;
    if (r.params.size() < facts.params.size()) r.params.resize(facts.params.size());
    for (size_t i = 0; i < n; ++i) {
      const size_t own = pending.uses[i].shares >= 0 ? static_cast<size_t>(pending.uses[i].shares) : i;
      const uint64_t at = places_[static_cast<size_t>(d.operands[i].value)].offset - windows[own].begin;
      const auto set = [&](const std::string& field, uint64_t base) {
        for (size_t f = 0; f < facts.params.size(); ++f)
          if (facts.params[f] == field) {
            r.params[f] = static_cast<uint32_t>(base);
            return true;
          }
        return false;
      };
      const uint32_t size = element_bytes(facts.bindings[i].element);
      bool has_base = set(facts.bindings[i].name + "_byte_base", at);
      if (at % size == 0) has_base |= set(facts.bindings[i].name + "_base", at / size);
      if (at != 0 && !has_base)
        fail(ErrorKind::kInternal, str("Kernel '", d.kernel.kernel, "' cannot start operand '", facts.bindings[i].name,
                                       "' at byte ", at, " of its window."));
    }
    r.params_offset = static_cast<uint32_t>(params_bytes_);
    params_bytes_ += round_up(std::max<size_t>(r.params.size() * 4, 16), limits_.uniform_alignment);
    set_grid(d.grid, r);

    pending.label = d.kernel.kernel;
    for (size_t i = 0; i < n; ++i)
      if (pending.uses[i].shares < 0)
        pending.bindings.push_back({{facts.bindings[i].index, facts.bindings[i].writes || pending.uses[i].writable},
                                    windows[i].buffer,
                                    windows[i].begin,
                                    windows[i].end - windows[i].begin});
    if (!facts.params.empty())
      pending.bindings.push_back(
          {{facts.params_binding, false, true}, -1, r.params_offset, round_up(r.params.size() * 4, 16)});
    pending_.push_back(std::move(pending));
    return r;
  }

  // Which operands must share a binding: a buffer that is written may not be bound twice over the same bytes, and is
  // `read_write` in all its bindings.
  void share_bindings(const Dispatch& d, const KernelFacts& facts, std::vector<Window>& windows,
                      std::vector<BindingUse>& uses) const {
    const size_t n = windows.size();
    const auto written = [&](size_t i) {
      for (size_t j = 0; j < n; ++j)
        if (d.operands[j].write && windows[j].buffer == windows[i].buffer) return true;
      return false;
    };
    for (size_t i = 0; i < n; ++i) {
      uses[i].writable = written(i);
      if (!uses[i].writable) continue;
      for (size_t j = 0; j < i && uses[i].shares < 0; ++j) {
        if (uses[j].shares >= 0 || windows[j].buffer != windows[i].buffer) continue;
        if (windows[i].begin >= windows[j].end || windows[j].begin >= windows[i].end) continue;
        if (facts.bindings[i].element != facts.bindings[j].element)
          fail(ErrorKind::kInternal, str("Kernel '", d.kernel.kernel, "' sees one buffer as ",
                                         facts.bindings[j].element, " and as ", facts.bindings[i].element, "."));
        uses[i].shares = static_cast<int32_t>(j);
        windows[j] = {windows[j].buffer, std::min(windows[i].begin, windows[j].begin),
                      std::max(windows[i].end, windows[j].end)};
      }
    }
    // A binding that a writer shares is written, whatever the first operand does with it.
    for (size_t i = 0; i < n; ++i)
      if (uses[i].shares >= 0) uses[static_cast<size_t>(uses[i].shares)].writable = true;
  }

  void set_grid(const Grid& grid, ReadyDispatch& r) const {
    const auto groups = [](const Axis& a) { return (a.items + a.per_group - 1) / a.per_group; };
    int64_t x = groups(grid.x), y = groups(grid.y);
    const int64_t z = groups(grid.z), most = limits_.groups_per_axis;
    if (x > most) {
      RLX_ASSERT(y == 1 && "a long x wraps into y");
      y = (x + most - 1) / most;
      x = most;
    }
    if (y > most || z > most)
      fail(ErrorKind::kUnsupported,
           str("A grid of ", x, " x ", y, " x ", z, " workgroups exceeds the GPU's ", most, " per axis."));
    r.x = static_cast<uint32_t>(x);
    r.y = static_cast<uint32_t>(y);
    r.z = static_cast<uint32_t>(z);
  }

  // A pipeline and bind group to be made, in the order of the dispatches.
  struct PendingPipeline {
    struct Entry {
      PipelineSource::Binding binding;
      int32_t buffer;  // -1: the parameters
      uint64_t offset, size;
    };
    KernelFacts facts;
    std::string label;
    std::vector<BindingUse> uses;
    std::vector<Entry> bindings;
  };

  // All at once: drivers compile on as many threads as there are.
  void make_pipelines() {
    params_buffer_ = device_->make_buffer(std::max<uint64_t>(params_bytes_, 256),
                                          WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, "parameters");
    std::vector<ReadyDispatch*> dispatches;
    for (auto* steps : {&static_ready_, &ready_})
      for (ReadyStep& r : *steps)
        if (r.dispatch) dispatches.push_back(&*r.dispatch);
    RLX_ASSERT(dispatches.size() == pending_.size());
    const int64_t before = device_->counters().pipelines;
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr failed;
    const auto work = [&] {
      for (size_t i = next++; i < pending_.size(); i = next++) try {
          const PendingPipeline& p = pending_[i];
          PipelineSource source{.label = p.label, .wgsl = specialize(p.facts, p.uses)};
          for (const auto& b : p.bindings) source.bindings.push_back(b.binding);
          dispatches[i]->pipeline = &device_->pipeline(source, options_.webgpu.bounds_checks);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failed) failed = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    const size_t count = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), pending_.size());
    for (size_t t = 1; t < count; ++t) threads.emplace_back(work);
    work();
    for (std::thread& t : threads) t.join();
    if (failed) std::rethrow_exception(failed);
    stats_.pipelines += device_->counters().pipelines - before;

    std::vector<std::byte> words(params_bytes_);
    for (size_t i = 0; i < pending_.size(); ++i) {
      ReadyDispatch& r = *dispatches[i];
      std::vector<WGPUBindGroupEntry> entries;
      for (const auto& b : pending_[i].bindings) {
        WGPUBindGroupEntry entry{};
        entry.binding = b.binding.index;
        entry.buffer = b.buffer < 0 ? params_buffer_.get() : buffers_[static_cast<size_t>(b.buffer)].get();
        entry.offset = b.offset;
        entry.size = b.size;
        entries.push_back(entry);
      }
      WGPUBindGroupDescriptor descriptor{};
      descriptor.layout = r.pipeline->layout.get();
      descriptor.entries = entries.data();
      descriptor.entryCount = entries.size();
      r.group = BindGroup(api_, api_.DeviceCreateBindGroup(device_->raw(), &descriptor));
      device_->check(str("binding the operands of ", r.step->node, " (", r.step->name, ")"));
      std::memcpy(words.data() + r.params_offset, r.params.data(), r.params.size() * 4);
    }
    pending_.clear();
    if (!words.empty()) {
      api_.QueueWriteBuffer(device_->queue(), params_buffer_.get(), 0, words.data(), words.size());
      ++stats_.parameter_writes;
    }
  }

  // ---- uploads ----

  void upload(int32_t v, const Tensor& tensor) {
    if (elements(v) == 0) return;
    const ProgramValue& to = value(v);
    const DType stored = stored_dtype(to.storage, to.type.dtype);
    const std::byte* bytes = tensor.bytes().data();
    uint64_t size = tensor.bytes().size();
    if (stored != to.type.dtype || size % 4 != 0) {
      staged_.resize(round_up(static_cast<uint64_t>(elements(v)) * size_of(stored), 4));
      if (stored != to.type.dtype) {
        check_range(to, tensor);
        convert_elements(to.type.dtype, bytes, stored, staged_.data(), elements(v));
      } else {
        std::memcpy(staged_.data(), bytes, size);
      }
      bytes = staged_.data();
      size = staged_.size();
    }
    const Place place = places_[static_cast<size_t>(v)];
    api_.QueueWriteBuffer(device_->queue(), buffers_[static_cast<size_t>(place.buffer)].get(), place.offset, bytes,
                          size);
    stats_.bytes_up += static_cast<int64_t>(size);
  }

  // 64-bit integers live in 32 bits on the device.
  static void check_range(const ProgramValue& to, const Tensor& tensor) {
    const DType dtype = to.type.dtype;
    if (dtype != DType::I64 && dtype != DType::U64) return;
    const bool is_signed = dtype == DType::I64;
    const LoadIntFn load = load_int_fn(dtype);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const int64_t x = load(tensor.bytes().data(), i);
      const bool fits = is_signed ? x >= INT32_MIN && x <= INT32_MAX : static_cast<uint64_t>(x) <= UINT32_MAX;
      if (!fits)
        fail(ErrorKind::kUnsupported,
             str("Value ", is_signed ? str(x) : str(static_cast<uint64_t>(x)), " of ", to.label, " (", to.type,
                 ") does not fit the 32 bits that integers have on the webgpu device; use the cpu device."));
    }
  }

  void upload_constants() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const auto id = static_cast<int32_t>(v);
      if (value(id).source == Source::kConstant && on_device(id)) upload(id, value(id).constant);
    }
    device_->check("uploading constants");
  }

  void write_dim_values() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const ProgramValue& p = program_.values[v];
      if (p.source != Source::kDimValue) continue;
      const int64_t size = p.dim.bind(program_.binding).value();
      require(size <= INT32_MAX, "Size ", p.dim, " (", size, ") does not fit i32.");
      host_[v] = Tensor::i32({}, {static_cast<int32_t>(size)});
      host_[v] = host_[v].reshaped(p.type.shape.sizes());
      if (on_device(static_cast<int32_t>(v))) upload(static_cast<int32_t>(v), host_[v]);
    }
  }

  void zero_states() {
    for (size_t i = 0; i < program_.state_values.size(); ++i) {
      const int32_t v = program_.state_values[i];
      if (v >= 0 && on_device(v)) upload(v, Tensor(value(v).type.dtype, value(v).type.shape.sizes()));
    }
  }

  void upload_params() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const auto id = static_cast<int32_t>(v);
      const ProgramValue& p = value(id);
      if (p.source != Source::kParam || !param_changed_[static_cast<size_t>(p.index)] || !on_device(id)) continue;
      upload(id, params_[static_cast<size_t>(p.index)]);
    }
    device_->check("uploading weights");
    for (ReadyStep& r : static_ready_) {
      const auto& params = r.step->params;
      if (statics_computed_ &&
          std::none_of(params.begin(), params.end(), [&](int32_t p) { return param_changed_[static_cast<size_t>(p)]; }))
        continue;
      run_step(r);
    }
    submit();
    device_->check("preparing weights");
    std::fill(param_changed_.begin(), param_changed_.end(), false);
    statics_computed_ = true;
    params_stale_ = false;
  }

  int32_t input_value(size_t index) const {
    for (size_t v = 0; v < program_.values.size(); ++v)
      if (program_.values[v].source == Source::kInput && program_.values[v].index == static_cast<int32_t>(index))
        return static_cast<int32_t>(v);
    return -1;
  }

  void upload_inputs() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const auto id = static_cast<int32_t>(v);
      if (value(id).source != Source::kInput || !on_device(id)) continue;
      Input& input = inputs_[static_cast<size_t>(value(id).index)];
      if (input.uploaded || fed_[static_cast<size_t>(value(id).index)] >= 0) continue;
      upload(id, input.tensor);
      input.uploaded = true;
    }
    device_->check("uploading inputs");
  }

  // ---- running ----

  void run_all(std::vector<StepTrace>* trace) {
    trace_ = trace;
    if (params_stale_ || !statics_computed_) upload_params();
    upload_inputs();
    for (ReadyStep& r : ready_) run_step(r);
    finish();
    trace_ = nullptr;
  }

  WGPUCommandEncoder encoder() {
    if (!encoder_) {
      WGPUCommandEncoderDescriptor descriptor{};
      encoder_ = CommandEncoder(api_, api_.DeviceCreateCommandEncoder(device_->raw(), &descriptor));
    }
    return encoder_.get();
  }
  WGPUComputePassEncoder pass() {
    if (!pass_) {
      WGPUComputePassDescriptor descriptor{};
      pass_ = ComputePass(api_, api_.CommandEncoderBeginComputePass(encoder(), &descriptor));
    }
    return pass_.get();
  }
  void end_pass() {
    if (pass_) api_.ComputePassEncoderEnd(pass_.get());
    pass_ = {};
  }
  void submit() {
    end_pass();
    if (!encoder_) return;
    WGPUCommandBufferDescriptor descriptor{};
    const CommandBuffer commands(api_, api_.CommandEncoderFinish(encoder_.get(), &descriptor));
    encoder_ = {};
    device_->check("encoding the schedule");
    const WGPUCommandBuffer raw = commands.get();
    api_.QueueSubmit(device_->queue(), 1, &raw);
    ++stats_.submits;
    device_->check("submitting the schedule");
  }

  void run_step(ReadyStep& r) {
    const int64_t begin_ns = trace_ ? now_ns() : 0;
    try {
      if (r.dispatch)
        encode(*r.dispatch);
      else
        run_on_host(std::get<HostCall>(r.step->work));
    } catch (Error& e) {
      e.add_context(str("running ", r.step->node, " (", r.step->name, ")"));
      throw;
    }
    if (!trace_) return;
    submit();
    device_->wait();
    trace_->push_back({.step = describe(*r.step), .begin_ns = begin_ns, .end_ns = now_ns()});
  }

  void encode(const ReadyDispatch& d) {
    const WGPUComputePassEncoder p = pass();
    api_.ComputePassEncoderSetPipeline(p, d.pipeline->pipeline.get());
    api_.ComputePassEncoderSetBindGroup(p, 0, d.group.get(), 0, nullptr);
    api_.ComputePassEncoderDispatchWorkgroups(p, d.x, d.y, d.z);
    ++stats_.dispatches;
  }

  // ---- host steps ----

  // Roots whose bytes the host has: inputs, weights, constants, and what host steps compute.
  void find_host_roots() {
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

  bool is_on_host(int32_t v) const {
    const int32_t r = root(v);
    if (value(r).source == Source::kInput && fed_[static_cast<size_t>(value(r).index)] >= 0) return false;
    return host_root_[static_cast<size_t>(r)];
  }

  // A value whose root the host has.
  Tensor host_tensor(int32_t v) const {
    const plan::Root r = plan::root_of(program_.problem, v);
    const ProgramValue& of = value(r.value);
    const Tensor* tensor = &host_[static_cast<size_t>(r.value)];
    if (of.source == Source::kInput) tensor = &inputs_[static_cast<size_t>(of.index)].tensor;
    if (of.source == Source::kParam) tensor = &params_[static_cast<size_t>(of.index)];
    if (of.source == Source::kConstant) tensor = &of.constant;
    if (of.source == Source::kState) tensor = &host_states_[static_cast<size_t>(of.index)];
    if (r.value == v) return *tensor;
    const auto offset = of.storage == Storage::kHost
                            ? static_cast<size_t>(value(v).host_offset_bytes)
                            : static_cast<size_t>(r.offset_bytes / storage_element_bytes(of)) * size_of(of.type.dtype);
    const TensorType& type = value(v).type;
    const auto bytes = static_cast<size_t>(type.size_bytes());
    if (bytes == 0) return Tensor(type.dtype, type.shape.sizes());
    return Tensor::borrow(type.dtype, type.shape.sizes(), tensor->bytes().subspan(offset, bytes));
  }

  static int64_t storage_element_bytes(const ProgramValue& v) {
    return static_cast<int64_t>(size_of(stored_dtype(v.storage, v.type.dtype)));
  }

  void run_on_host(HostCall& call) {
    std::vector<int32_t> down;
    for (const int32_t v : call.inputs)
      if (!is_on_host(v) && elements(v) > 0) down.push_back(v);
    std::vector<Tensor> read = read_back(down);
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const int32_t v = call.inputs[i];
      const auto it = std::find(down.begin(), down.end(), v);
      if (it != down.end())
        call.program->set_input(i, read[static_cast<size_t>(it - down.begin())]);
      else if (elements(v) == 0)
        call.program->set_input(i, Tensor(value(v).type.dtype, value(v).type.shape.sizes()));
      else
        call.program->set_input(i, host_tensor(v));
    }
    call.program->run();
    ++stats_.host_steps;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const int32_t v = call.outputs[i];
      host_[static_cast<size_t>(v)] = call.program->output(i);
      if (!on_device(v)) continue;
      submit();  // what was encoded may still read the old bytes
      upload(v, host_[static_cast<size_t>(v)]);
    }
  }

  // ---- reading back ----

  // Copies the values to the staging buffer at the end of what is encoded, submits, and converts them.
  std::vector<Tensor> read_back(const std::vector<int32_t>& values) {
    std::vector<Tensor> out;
    if (values.empty()) return out;
    std::vector<uint64_t> at;
    uint64_t bytes = 0;
    for (const int32_t v : values) {
      at.push_back(bytes);
      bytes += round_up(static_cast<uint64_t>(storage_bytes(value(v).storage, value(v).type)) + 4, 16);
    }
    if (bytes > staging_bytes_) {
      staging_bytes_ = 256;
      while (staging_bytes_ < bytes) staging_bytes_ *= 2;
      staging_ = device_->make_buffer(staging_bytes_, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "staging");
    }
    end_pass();
    std::vector<uint64_t> skip;
    for (size_t i = 0; i < values.size(); ++i) {
      const int32_t v = values[i];
      const Place place = places_[static_cast<size_t>(v)];
      const uint64_t begin = place.offset / 4 * 4;  // a view of bytes may start anywhere; copies do not
      skip.push_back(place.offset - begin);
      const uint64_t size =
          round_up(skip.back() + static_cast<uint64_t>(storage_bytes(value(v).storage, value(v).type)), 4);
      api_.CommandEncoderCopyBufferToBuffer(encoder(), buffers_[static_cast<size_t>(place.buffer)].get(), begin,
                                            staging_.get(), at[i], size);
      stats_.bytes_down += static_cast<int64_t>(size);
    }
    submit();
    const auto* mapped = static_cast<const std::byte*>(device_->map(staging_, bytes));
    for (size_t i = 0; i < values.size(); ++i) {
      const ProgramValue& v = value(values[i]);
      Tensor tensor(v.type.dtype, v.type.shape.sizes());
      from_storage(v, mapped + at[i] + skip[i], tensor);
      out.push_back(std::move(tensor));
    }
    api_.BufferUnmap(staging_.get());
    return out;
  }

  static void from_storage(const ProgramValue& v, const std::byte* bytes, Tensor& to) {
    if (to.num_elements() == 0) return;
    const DType stored = stored_dtype(v.storage, v.type.dtype);
    if (stored == v.type.dtype)
      std::memcpy(to.mutable_bytes().data(), bytes, to.bytes().size());
    else
      convert_elements(stored, bytes, v.type.dtype, to.mutable_bytes().data(), to.num_elements());
  }

  Tensor read_value(int32_t v) {
    if (elements(v) == 0) return Tensor(value(v).type.dtype, value(v).type.shape.sizes());
    return std::move(read_back({v})[0]);
  }

  // Outputs, then states and feeds.
  void finish() {
    std::vector<int32_t> down;
    for (const int32_t v : program_.outputs)
      if (!is_on_host(v) && elements(v) > 0 && std::find(down.begin(), down.end(), v) == down.end()) down.push_back(v);
    std::vector<std::pair<int32_t, int32_t>> copies;  // from, to
    for (size_t u = 0; u < program_.updates.size(); ++u)
      if (!plan_.update_in_place[u]) copies.emplace_back(program_.updates[u].value, program_.updates[u].state);
    for (const auto& [output, input] : feeds_) copies.emplace_back(program_.outputs[output], input_value(input));
    // Sources that the host has, or that another copy overwrites, go through the host: rare and small.
    std::vector<int32_t> sources;
    for (const auto& [from, to] : copies)
      if (!is_on_host(from) && elements(from) > 0) sources.push_back(from);
    std::vector<int32_t> all = down;
    all.insert(all.end(), sources.begin(), sources.end());
    if (options_.webgpu.skip_readback) {
      submit();
      device_->wait();
      return;
    }
    std::vector<Tensor> read = read_back(all);
    if (all.empty()) submit();
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const int32_t v = program_.outputs[i];
      if (elements(v) == 0) continue;
      const auto it = std::find(down.begin(), down.end(), v);
      const Tensor from = it != down.end() ? read[static_cast<size_t>(it - down.begin())] : host_tensor(v);
      std::memcpy(outputs_[i].mutable_bytes().data(), from.bytes().data(), from.bytes().size());
    }
    size_t next = down.size();
    std::vector<std::pair<int32_t, Tensor>> writes;
    for (const auto& [from, to] : copies) {
      if (to < 0 || elements(from) == 0) continue;
      writes.emplace_back(to, is_on_host(from) ? host_tensor(from).clone() : read[next++]);
    }
    for (auto& [to, tensor] : writes) {
      if (value(to).source == Source::kState && !on_device(to)) {
        host_states_[static_cast<size_t>(value(to).index)] = tensor;
        continue;
      }
      if (on_device(to)) upload(to, tensor);
      if (value(to).source == Source::kInput) {
        Input& input = inputs_[static_cast<size_t>(value(to).index)];
        input.tensor = tensor;
        input.uploaded = true;
        input.retained.clear();
      }
    }
    device_->check("finishing the run");
  }

  std::shared_ptr<Device> device_;
  const Api& api_;
  CompileOptions options_;
  Limits limits_;
  Program program_;
  plan::Plan plan_;
  std::vector<Input> inputs_;
  std::vector<Tensor> params_;
  std::vector<bool> param_changed_;
  std::vector<int32_t> fed_;  // by input: the output whose value it holds on the device; -1: its tensor's
  std::vector<std::pair<size_t, size_t>> feeds_;
  bool params_stale_ = true, statics_computed_ = false;

  std::vector<Buffer> buffers_;
  std::vector<Place> places_;  // by value
  int32_t zeros_ = -1;
  size_t small_weights_done_ = 0;
  std::vector<Tensor> host_;  // by value: what host steps have computed
  std::vector<bool> host_root_;
  std::vector<Tensor> host_states_, outputs_;
  std::vector<std::byte> staged_;

  std::vector<PendingPipeline> pending_;
  uint64_t params_bytes_ = 0;
  Buffer params_buffer_, staging_;
  uint64_t staging_bytes_ = 0;
  std::vector<ReadyStep> static_ready_, ready_;
  CommandEncoder encoder_;
  ComputePass pass_;
  std::vector<StepTrace>* trace_ = nullptr;
  DeviceStats stats_;
};

}  // namespace

std::unique_ptr<DeviceProgram> make_program(Program program, std::shared_ptr<Device> device,
                                            const CompileOptions& options) {
  return std::make_unique<WebGpuProgram>(std::move(program), std::move(device), options);
}

}  // namespace rlx::webgpu
