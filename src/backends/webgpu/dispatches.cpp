#include "backends/webgpu/dispatches.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "rlx/error.h"

namespace rlx::webgpu {

int64_t Extent::of(int64_t n) const { return std::min(n, (checked_mul(n, actual) + upper - 1) / upper); }

Dispatches::Dispatches(Device& device, const Limits& limits, const Program& program, const Memory& memory,
                       const CompileOptions& options)
    : device_(device), limits_(limits), program_(program), memory_(memory), options_(options) {}

size_t Dispatches::add(const Step& step, const Dispatch& d) {
  try {
    ReadyDispatch r{.step = &step, .dispatch = &d};
    Pending pending;
    const KernelFacts& facts = facts_of(d.kernel, pending.key);
    pending.facts = &facts;
    RLX_ASSERT(facts.bindings.size() == d.operands.size() && "operands do not match the kernel's bindings");
    const size_t n = d.operands.size();
    std::vector<Window> windows;
    pending.uses.resize(n);
    for (size_t i = 0; i < n; ++i) {
      RLX_ASSERT(facts.bindings[i].writes == d.operands[i].write && "a kernel writes what the lowering reads");
      windows.push_back(window_of(d.operands[i]));
    }
    share_bindings(d, facts, windows, pending.uses);
    r.params = d.params.words;
    if (r.params.size() < facts.params.size()) r.params.resize(facts.params.size());
    set_bases(d, pending, windows, r.params);
    r.params_offset = static_cast<uint32_t>(params_bytes_);
    params_bytes_ += round_up(std::max<size_t>(r.params.size() * 4, 16), limits_.uniform_alignment);
    if (d.is_copy) {
      const Place from = memory_.place(d.operands[0].value), to = memory_.place(d.operands[1].value);
      r.is_done = from.buffer == to.buffer && from.offset == to.offset;
    }
    set_grid(d.grid, {}, r);
    for (size_t i = 0; i < n; ++i)
      if (pending.uses[i].shares < 0)
        pending.entries.push_back({{facts.bindings[i].index, facts.bindings[i].writes || pending.uses[i].writable},
                                   windows[i].buffer,
                                   windows[i].begin,
                                   windows[i].end - windows[i].begin});
    if (!facts.params.empty())
      pending.entries.push_back(
          {{facts.params_binding, false, true}, -1, r.params_offset, round_up(r.params.size() * 4, 16)});
    for (const BindingUse& u : pending.uses) pending.key += str(" ", u.shares, u.writable ? "w" : "");
    pending.same_as = pipelines_.emplace(pending.key, pending_.size()).first->second;
    pending_.push_back(std::move(pending));
    ready_.push_back(std::move(r));
    return ready_.size() - 1;
  } catch (Error& e) {
    e.add_context(str("preparing ", step.node, " (", step.name, ")"));
    throw;
  }
}

const KernelFacts& Dispatches::facts_of(const KernelKey& key, std::string& text) {
  text = key.kernel;
  for (const auto& [name, type] : key.types) text += str(" ", name, "=", type);
  for (const auto& [name, value] : key.constants) text += str(" ", name, "=", value);
  for (const auto& [from, to] : key.includes) text += str(" ", from, ">", to);
  if (key.source) text += str("\n", *key.source);
  const auto it = facts_.find(text);
  if (it != facts_.end()) return it->second;
  return facts_.emplace(text, kernel_facts(key, options_.webgpu.kernels)).first->second;
}

// ---- windows ----

Dispatches::Window Dispatches::window_of(const Operand& operand) const {
  const Place place = memory_.place(operand.value);
  RLX_ASSERT(place.buffer >= 0);
  const auto bytes = static_cast<uint64_t>(program_.problem.values[static_cast<size_t>(operand.value)].size_bytes);
  const uint64_t alignment = std::max<uint64_t>(limits_.binding_alignment, 16);
  const uint64_t begin = place.offset / alignment * alignment;
  // A binding holds a whole vector at least. It is counted from where the window begins: 16 bytes from the start of a
  // short part of a value on may be those of the next one.
  uint64_t end = round_up(std::max(place.offset + bytes, begin + 16), 16);
  // A write behind the slot must reach the guard, and a read the NaN in it, to be found out: checked WGSL would give
  // the last element instead. A part of a value that is read ends inside it, or fills the binding.
  if (options_.poison) {
    const uint64_t guard = memory_.guard_begin(operand.value);
    const bool is_end = round_up(place.offset + bytes, 16) == guard;
    if (guard + kGuardBytes - begin <= limits_.max_binding_bytes) {
      if (operand.write || is_end) end = guard + kGuardBytes;
    } else if (operand.write) {  // as much of it as a binding holds
      end = std::max(end, begin + limits_.max_binding_bytes / 16 * 16);
    }
  }
  return {place.buffer, begin, end};
}

// Which operands must share a binding: a buffer that is written may not be bound twice over the same bytes, and is
// `read_write` in all its bindings; and a stage has so many bindings and no more.
void Dispatches::share_bindings(const Dispatch& d, const KernelFacts& facts, std::vector<Window>& windows,
                                std::vector<BindingUse>& uses) const {
  const size_t n = windows.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      uses[i].writable = uses[i].writable || (d.operands[j].write && windows[j].buffer == windows[i].buffer);
  const auto merge = [&](size_t j, size_t i) {  // i into j, with all that share i
    for (size_t k = 0; k < n; ++k)
      if (k == i || uses[k].shares == static_cast<int32_t>(i)) uses[k].shares = static_cast<int32_t>(j);
    windows[j] = {windows[j].buffer, std::min(windows[i].begin, windows[j].begin),
                  std::max(windows[i].end, windows[j].end)};
  };
  for (bool changed = true; changed;) {  // a window that grew may meet another one
    changed = false;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j) {
        if (uses[i].shares >= 0 || uses[j].shares >= 0 || !uses[i].writable) continue;
        if (windows[j].buffer != windows[i].buffer || windows[i].begin >= windows[j].end ||
            windows[j].begin >= windows[i].end)
          continue;
        if (facts.bindings[i].element != facts.bindings[j].element)
          fail(ErrorKind::kInternal, str("Kernel '", d.kernel.kernel, "' sees one buffer as ",
                                         facts.bindings[j].element, " and as ", facts.bindings[i].element, "."));
        merge(j, i);
        changed = true;
      }
  }
  // Too many: the two of one type in one buffer whose common window is smallest, again and again.
  const auto bindings = [&] {
    return static_cast<uint32_t>(std::count_if(uses.begin(), uses.end(), [](const auto& u) { return u.shares < 0; }));
  };
  while (bindings() > limits_.storage_bindings) {
    size_t best_i = n, best_j = n;
    uint64_t best = limits_.max_binding_bytes + 1;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j) {
        if (uses[i].shares >= 0 || uses[j].shares >= 0 || windows[i].buffer != windows[j].buffer ||
            facts.bindings[i].element != facts.bindings[j].element)
          continue;
        const uint64_t bytes = std::max(windows[i].end, windows[j].end) - std::min(windows[i].begin, windows[j].begin);
        if (bytes >= best) continue;
        best = bytes;
        best_i = i;
        best_j = j;
      }
    if (best_i == n)
      fail(ErrorKind::kUnsupported,
           str("Kernel '", d.kernel.kernel, "' has ", n, " operands; the GPU binds at most ", limits_.storage_bindings,
               " buffers, and no two of these operands fit one binding."));
    merge(best_j, best_i);
  }
  for (size_t i = 0; i < n; ++i) {
    if (uses[i].shares >= 0) continue;
    const uint64_t bytes = windows[i].end - windows[i].begin;
    if (bytes <= limits_.max_binding_bytes) continue;
    fail(ErrorKind::kUnsupported, str("Kernel '", d.kernel.kernel, "' sees ", bytes, " bytes of ",
                                      program_.values[static_cast<size_t>(d.operands[i].value)].label,
                                      " at once; the GPU binds at most ", limits_.max_binding_bytes, "."));
  }
}

// Where each operand starts in its window.
void Dispatches::set_bases(const Dispatch& d, const Pending& pending, const std::vector<Window>& windows,
                           std::vector<uint32_t>& words) const {
  const KernelFacts& facts = *pending.facts;
  const auto set = [&](const std::string& field, uint64_t base) {
    for (size_t f = 0; f < facts.params.size(); ++f)
      if (facts.params[f] == field) {
        words[f] = static_cast<uint32_t>(base);
        return true;
      }
    return false;
  };
  for (size_t i = 0; i < d.operands.size(); ++i) {
    const size_t own = pending.uses[i].shares >= 0 ? static_cast<size_t>(pending.uses[i].shares) : i;
    const uint64_t at = memory_.place(d.operands[i].value).offset - windows[own].begin;
    const uint32_t size = element_bytes(facts.bindings[i].element);
    bool has_base = set(facts.bindings[i].name + "_byte_base", at);
    if (at % size == 0) has_base |= set(facts.bindings[i].name + "_base", at / size);
    if (at != 0 && !has_base)
      fail(ErrorKind::kInternal, str("Kernel '", d.kernel.kernel, "' cannot start operand '", facts.bindings[i].name,
                                     "' at byte ", at, " of its window."));
  }
}

// ---- the active extent ----

void Dispatches::set_grid(const Grid& grid, const Extent& extent, ReadyDispatch& r) const {
  const auto groups = [&](const Axis& a) {
    const int64_t items = a.active ? extent.of(a.items) : a.items;
    return (items + a.per_group - 1) / a.per_group;
  };
  int64_t x = r.is_done || r.rows == Rows::kNone ? 0 : groups(grid.x), y = groups(grid.y);
  const int64_t z = groups(grid.z), most = limits_.groups_per_axis;
  if (x > (y == 1 ? limits_.groups_per_row : most)) {
    RLX_ASSERT(y == 1 && "a long x wraps into y");
    x = limits_.groups_per_row;
    y = (groups(grid.x) + x - 1) / x;
  }
  if (y > most || z > most)
    fail(ErrorKind::kUnsupported,
         str("A grid of ", x, " x ", y, " x ", z, " workgroups exceeds the GPU's ", most, " per axis."));
  r.x = static_cast<uint32_t>(x);
  r.y = static_cast<uint32_t>(y);
  r.z = static_cast<uint32_t>(z);
}

void Dispatches::set_extent(const Extent& extent, const std::vector<Rows>& rows, DeviceStats& stats) {
  for (size_t i = 0; i < ready_.size(); ++i) {
    ready_[i].rows = rows[i];
    set_grid(ready_[i].dispatch->grid, rows[i] == Rows::kInUse ? extent : Extent{}, ready_[i]);
  }
  write_params(extent, stats);
}

void Dispatches::write_params(const Extent& extent, DeviceStats& stats) {
  std::vector<std::byte> bytes(params_bytes_);
  for (const ReadyDispatch& r : ready_) {
    std::memcpy(bytes.data() + r.params_offset, r.params.data(), r.params.size() * 4);
    if (r.rows != Rows::kInUse) continue;
    for (const uint32_t word : r.dispatch->params.active) {
      const auto scaled = static_cast<uint32_t>(extent.of(r.params[word]));
      std::memcpy(bytes.data() + r.params_offset + word * 4, &scaled, 4);
    }
  }
  if (bytes == params_) return;
  device_.api().QueueWriteBuffer(device_.queue(), params_buffer_.get(), 0, bytes.data(), bytes.size());
  ++stats.parameter_writes;
  params_ = std::move(bytes);
}

// ---- pipelines ----

// All at once: drivers compile on as many threads as there are.
void Dispatches::make_pipelines(DeviceStats& stats) {
  const int64_t before = device_.counters().pipelines;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failed;
  const auto work = [&] {
    for (size_t i = next++; i < pending_.size(); i = next++) try {
        const Pending& p = pending_[i];
        if (p.same_as != i) continue;
        PipelineSource source{.label = ready_[i].dispatch->kernel.kernel, .wgsl = specialize(*p.facts, p.uses)};
        for (const auto& e : p.entries) source.bindings.push_back(e.binding);
        ready_[i].pipeline = &device_.pipeline(source, options_.webgpu.bounds_checks);
      } catch (Error& e) {
        e.add_context(str("preparing ", ready_[i].step->node, " (", ready_[i].step->name, ")"));
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::make_exception_ptr(e);
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
  for (size_t i = 0; i < pending_.size(); ++i) ready_[i].pipeline = ready_[pending_[i].same_as].pipeline;
  stats.pipelines += device_.counters().pipelines - before;
}

void Dispatches::make(DeviceStats& stats) {
  params_buffer_ = device_.make_buffer(std::max<uint64_t>(params_bytes_, 256),
                                       WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, "parameters");
  ++stats.buffers;
  make_pipelines(stats);
  const Api& api = device_.api();
  std::vector<WGPUBindGroupEntry> entries;
  for (size_t i = 0; i < pending_.size(); ++i) {
    ReadyDispatch& r = ready_[i];
    entries.clear();
    for (const auto& e : pending_[i].entries) {
      WGPUBindGroupEntry entry{};
      entry.binding = e.binding.index;
      entry.buffer = e.buffer < 0 ? params_buffer_.get() : memory_.buffer(e.buffer);
      entry.offset = e.offset;
      entry.size = e.size;
      entries.push_back(entry);
    }
    WGPUBindGroupDescriptor descriptor{};
    descriptor.layout = r.pipeline->layout.get();
    descriptor.entries = entries.data();
    descriptor.entryCount = entries.size();
    r.group = BindGroup(api, api.DeviceCreateBindGroup(device_.raw(), &descriptor));
    if (device_.has_error()) device_.check(str("binding the operands of ", r.step->node, " (", r.step->name, ")"));
  }
  pending_.clear();
  facts_.clear();
  pipelines_.clear();
  write_params({}, stats);
}

}  // namespace rlx::webgpu
