// Control flow: the host drives it, values stay on the device (spec 40, 5.7). The regions' commands join those of the
// program they are in; only a predicate comes back.
#include <algorithm>

#include "backends/webgpu/executor.h"
#include "core/convert.h"

namespace rlx::webgpu {

namespace {

constexpr int64_t kTripsPerSubmission = 64;

}  // namespace

// `row`: of a stack on one side, whose rows are the other side; -1: they are alike.
void WebGpuProgram::copy_between(const WebGpuProgram& from_program, int32_t from, const WebGpuProgram& to_program,
                                 int32_t to, int64_t row_of_from, int64_t row_of_to) {
  const ProgramValue& part = row_of_from >= 0 ? to_program.value(to) : from_program.value(from);
  const int64_t n = part.type.shape.num_elements();
  if (n == 0) return;
  RLX_ASSERT(from_program.value(from).storage == to_program.value(to).storage);
  const auto row_bytes = static_cast<uint64_t>(n * storage_element_bytes(part.storage, part.type.dtype));
  const Place a = from_program.memory_.place(from), b = to_program.memory_.place(to);
  commands_.copy(from_program.memory_.buffer(a.buffer),
                 a.offset + static_cast<uint64_t>(std::max<int64_t>(row_of_from, 0)) * row_bytes,
                 to_program.memory_.buffer(b.buffer),
                 b.offset + static_cast<uint64_t>(std::max<int64_t>(row_of_to, 0)) * row_bytes, round_up(row_bytes, 4));
}

void WebGpuProgram::give(int32_t from, WebGpuProgram& region, size_t input, int64_t row) {
  copy_between(*this, from, region, region.inputs_[input].value, row, -1);
  region.inputs_[input].fed = true;
}

bool WebGpuProgram::is_true(int32_t v, Tensor& read) {
  if (!is_on_host(v)) read_value(v, read);
  const std::span<const std::byte> bytes = is_on_host(v) ? host_bytes(v) : read.bytes();
  return load_fn(value(v).type.dtype)(bytes.data(), 0) != 0;  // NaN counts as true
}

void WebGpuProgram::run_loop(ReadyLoop& ready) {
  switch (ready.loop->kind) {
    case Loop::Kind::kIf: run_if(ready); break;
    case Loop::Kind::kWhile: run_while(ready); break;
    case Loop::Kind::kScan: run_scan(ready); break;
  }
}

void WebGpuProgram::run_if(ReadyLoop& ready) {
  const Loop& loop = *ready.loop;
  WebGpuProgram& branch = *ready.regions[is_true(loop.inputs[0], ready.predicate) ? 0 : 1];
  for (size_t i = 1; i < loop.inputs.size(); ++i) give(loop.inputs[i], branch, i - 1, -1);
  branch.run(inner_trace_, &ready.nothing);
  for (size_t r = 0; r < loop.outputs.size(); ++r)
    if (loop.outputs[r] >= 0) copy_between(branch, branch.program_.outputs[r], *this, loop.outputs[r], -1, -1);
}

void WebGpuProgram::run_while(ReadyLoop& ready) {
  const Loop& loop = *ready.loop;
  WebGpuProgram &cond = *ready.regions[0], &body = *ready.regions[1];
  const auto& carried = body.program_.state_values;
  for (size_t i = 0; i < carried.size(); ++i) copy_between(*this, loop.inputs[i], body, carried[i], -1, -1);
  for (int64_t n = 0; loop.trips < 0 || n < loop.trips; ++n) {
    for (size_t i = 0; i < carried.size(); ++i) {
      if (cond.is_used(cond.inputs_[i].value)) copy_between(body, carried[i], cond, cond.inputs_[i].value, -1, -1);
      cond.inputs_[i].fed = true;
    }
    cond.run(inner_trace_, nullptr);
    if (cond.outputs_[0].at(0) == 0) break;
    body.run(inner_trace_, &ready.nothing);
  }
  for (size_t i = 0; i < carried.size(); ++i)
    if (loop.outputs[i] >= 0) copy_between(body, carried[i], *this, loop.outputs[i], -1, -1);
}

void WebGpuProgram::run_scan(ReadyLoop& ready) {
  const Loop& loop = *ready.loop;
  WebGpuProgram& body = *ready.regions[0];
  const auto carries = static_cast<size_t>(loop.carries), broadcast = static_cast<size_t>(loop.broadcast);
  const auto& carried = body.program_.state_values;
  for (size_t i = 0; i < carries; ++i) copy_between(*this, loop.inputs[i], body, carried[i], -1, -1);
  for (size_t i = 0; i < broadcast; ++i) give(loop.inputs[carries + i], body, i, -1);
  const size_t stacks = body.outputs_.size();
  size_t next_kept = 0;
  for (int64_t t = 0; t < loop.trips; ++t) {
    for (size_t i = broadcast; i < body.inputs_.size(); ++i) give(loop.inputs[carries + i], body, i, t);
    body.run(inner_trace_, &ready.nothing);
    for (size_t s = 0; s < stacks; ++s)
      if (loop.outputs[carries + s] >= 0)
        copy_between(body, body.program_.outputs[s], *this, loop.outputs[carries + s], -1, t);
    if (next_kept < loop.kept.size() && loop.kept[next_kept] == t) {
      if (const int32_t to = loop.outputs[carries + stacks]; to >= 0)
        copy_between(body, carried[0], *this, to, -1, static_cast<int64_t>(next_kept));
      ++next_kept;
    }
    if (t % kTripsPerSubmission == kTripsPerSubmission - 1) submit();
  }
  for (size_t i = 0; i < carries; ++i)
    if (loop.outputs[i] >= 0) copy_between(body, carried[i], *this, loop.outputs[i], -1, -1);
}

// Does a step, an output or a new state read the value? Roots only.
bool WebGpuProgram::is_used(int32_t v) const {
  const auto reads = [&](const std::vector<int32_t>& values) {
    return std::any_of(values.begin(), values.end(), [&](int32_t r) { return root(r) == v; });
  };
  for (const plan::Step& s : program_.problem.steps)
    if (reads(s.reads)) return true;
  return reads(program_.outputs) || std::any_of(program_.updates.begin(), program_.updates.end(),
                                                [&](const plan::Update& u) { return root(u.value) == v; });
}

}  // namespace rlx::webgpu
