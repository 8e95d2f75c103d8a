// CompileOptions::poison: NaN in memory that holds nothing, behind inputs and weights too, and in workgroup memory
// before every kernel; and bytes behind every slot that must stay as they are (spec 20, 2.5, M8).
#include <algorithm>

#include "backends/webgpu/executor.h"

namespace rlx::webgpu {

namespace {

constexpr uint64_t kPoisonBytes = uint64_t{1} << 20;
// NaN as f32 and as f16, and no index of anything. What arithmetic makes of it is not a guard's bytes: those are behind
// it in the buffer.
constexpr uint32_t kPoison = 0x7FFF7FFF;
constexpr std::byte kGuard{0xFF};

}  // namespace

// Before anything is uploaded.
void WebGpuProgram::poison_buffers() {
  const std::vector<uint32_t> poison(kPoisonBytes / 4, kPoison);
  const std::vector<std::byte> guard(kGuardBytes, kGuard);
  poison_ =
      device_->make_buffer(kPoisonBytes + kGuardBytes, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, "poison");
  api_.QueueWriteBuffer(device_->queue(), poison_.get(), 0, poison.data(), kPoisonBytes);
  api_.QueueWriteBuffer(device_->queue(), poison_.get(), kPoisonBytes, guard.data(), kGuardBytes);
  DeviceStats not_of_runs;
  Commands commands(*device_, not_of_runs);
  for (int64_t i = 0; i < memory_.count(); ++i) poison_buffer(commands, memory_.first_own() + static_cast<int32_t>(i));
  commands.submit("poisoning memory");
}

void WebGpuProgram::poison_buffer(Commands& commands, int32_t index) const {
  for (uint64_t at = 0; at < memory_.buffer_bytes(index); at += kPoisonBytes)
    commands.copy(poison_.get(), 0, memory_.buffer(index), at,
                  std::min(kPoisonBytes, memory_.buffer_bytes(index) - at));
}

void WebGpuProgram::make_guards() {
  uint64_t writes = 0;
  for (const auto* steps : {&static_ready_, &ready_})
    for (const ReadyStep& r : *steps)
      if (r.dispatch >= 0)
        for (const Operand& o : std::get<Dispatch>(r.step->work).operands) writes += o.write ? 1 : 0;
  guards_ = device_->make_buffer(std::max<uint64_t>(writes * kGuardBytes, 256),
                                 WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, "guards");
  stats_.buffers += 2;

  // What dies after each step: roots whose block is not taken over in place.
  const size_t n = program_.values.size();
  std::vector<int32_t> death(n, -1);
  std::vector<bool> taken(n);
  for (const auto& [written, read] : plan_.shared) taken[static_cast<size_t>(root(read))] = true;
  for (size_t t = 0; t < plan_.order.size(); ++t) {
    const plan::Step& step = program_.problem.steps[static_cast<size_t>(plan_.order[t])];
    for (const auto* list : {&step.reads, &step.writes})
      for (const int32_t v : *list) death[static_cast<size_t>(root(v))] = static_cast<int32_t>(t);
  }
  deaths_.resize(plan_.order.size());
  for (size_t v = 0; v < n; ++v)
    if (death[v] >= 0 && !taken[v] && program_.problem.values[v].region == plan::Region::kActivation &&
        program_.problem.values[v].size_bytes > 0)
      deaths_[static_cast<size_t>(death[v])].push_back(static_cast<int32_t>(v));
}

void WebGpuProgram::poison_arena() {
  for (const int32_t page : memory_.arena()) poison_buffer(commands_, page);
}

void WebGpuProgram::poison_dead(size_t step) {
  for (const int32_t v : deaths_[step]) {
    const Place place = memory_.place(v);
    const auto bytes = static_cast<uint64_t>(program_.problem.values[static_cast<size_t>(v)].size_bytes);
    for (uint64_t at = 0; at < bytes; at += kPoisonBytes)
      commands_.copy(poison_.get(), 0, memory_.buffer(place.buffer), place.offset + at,
                     std::min(kPoisonBytes, bytes - at));
  }
}

void WebGpuProgram::poison_workgroups() {
  commands_.dispatch(dispatches_[poison_dispatch_]);
  --stats_.dispatches;  // which are the program's
}

void WebGpuProgram::guard(const ReadyStep& r) {
  for (const Operand& o : std::get<Dispatch>(r.step->work).operands)
    if (o.write && elements(o.value) > 0)
      commands_.copy(poison_.get(), kPoisonBytes, memory_.buffer_of(o.value), memory_.guard_begin(o.value),
                     kGuardBytes);
}

void WebGpuProgram::collect_guards(const ReadyStep& r) {
  for (const Operand& o : std::get<Dispatch>(r.step->work).operands) {
    if (!o.write || elements(o.value) == 0) continue;
    commands_.copy(memory_.buffer_of(o.value), memory_.guard_begin(o.value), guards_.get(),
                   guarded_.size() * kGuardBytes, kGuardBytes);
    commands_.copy(poison_.get(), 0, memory_.buffer_of(o.value), memory_.guard_begin(o.value), kGuardBytes);
    guarded_.push_back({r.step, o.value});
  }
}

void WebGpuProgram::check_guards() {
  const std::byte* bytes = readback_.data(static_cast<size_t>(guards_item_));
  for (size_t i = 0; i < guarded_.size(); ++i)
    for (uint64_t b = 0; b < kGuardBytes; ++b) {
      if (bytes[i * kGuardBytes + b] == kGuard) continue;
      const GuardedWrite& w = guarded_[i];
      fail(ErrorKind::kInternal, str("Kernel '", std::get<Dispatch>(w.step->work).kernel.kernel, "' of ", w.step->node,
                                     " (", w.step->name, ") writes outside its result ", value(w.value).label, " (",
                                     value(w.value).type, "): byte ", b, " of the guard behind it has changed."));
    }
}

}  // namespace rlx::webgpu
