#include "backends/webgpu/memory.h"

#include <algorithm>
#include <map>

#include "backends/host/interned.h"
#include "rlx/error.h"

namespace rlx::webgpu {

namespace {

constexpr uint64_t kWeightsBufferBytes = uint64_t{256} << 20;  // small weights share buffers of this size

// What programs of one graph for different sizes have in common, by a number that is the same in all of them; -1 for
// other values. Static values are named by the node they are computed for, how, and of what: where a part of a weight
// starts may depend on the sizes.
std::vector<int64_t> common_names(const Program& program, host::Interned& interned) {
  std::vector<int64_t> names(program.values.size(), -1);
  std::map<std::string, int> seen;
  const auto name = [&](size_t v, std::string of) {
    const ProgramValue& value = program.values[v];
    if (program.problem.values[v].view_of >= 0 || value.storage == Storage::kHost) return;
    of += str("/", static_cast<int>(value.storage), "/", program.problem.values[v].size_bytes);
    const int nth = seen[of]++;
    names[v] = interned(str(of, "/", nth));
  };
  for (size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].source == Source::kParam) name(v, str("param ", program.values[v].index));
    if (program.values[v].source == Source::kState) name(v, str("state ", program.values[v].index));
  }
  std::vector<int64_t> contents = names;  // of roots: what tells one program's from another's
  for (const Step& step : program.static_steps) {
    std::string of = str("static ", step.graph_node, " ", step.name, " ", step.node_text);
    const auto reads = [&](int32_t v) {
      const plan::Root root = plan::root_of(program.problem, v);
      of += str(" ", contents[static_cast<size_t>(root.value)], "+", root.offset_bytes, "+",
                program.values[static_cast<size_t>(v)].host_offset_bytes);
    };
    const auto writes = [&](int32_t v) {
      contents[static_cast<size_t>(plan::root_of(program.problem, v).value)] = interned(of);
    };
    if (const auto* d = std::get_if<Dispatch>(&step.work)) {
      of += str(" ", d->kernel.kernel);
      for (const auto& [constant, n] : d->kernel.constants) of += str(" ", constant, "=", n);
      for (const uint32_t word : d->params.words) of += str(" ", word);
      for (const Operand& o : d->operands) reads(o.value);  // what is written may be added to what is there
      for (const Operand& o : d->operands) {
        if (!o.write || program.values[static_cast<size_t>(o.value)].source != Source::kStatic) continue;
        writes(o.value);
        name(static_cast<size_t>(o.value), of);
      }
    } else if (const auto* h = std::get_if<HostCall>(&step.work)) {
      for (const int32_t v : h->inputs) reads(v);
      for (const int32_t v : h->outputs) writes(v);
    } else {
      const auto& loop = std::get<Loop>(step.work);
      for (const int32_t v : loop.inputs) reads(v);
      for (const int32_t v : loop.outputs)
        if (v >= 0) writes(v);
    }
  }
  return names;
}

}  // namespace

Limits limits_for(const Device& device, const CompileOptions& options) {
  Limits limits = device.limits();
  const auto cut = [](uint64_t& limit, int64_t wanted) {
    if (wanted > 0) limit = std::min<uint64_t>(limit, std::max<uint64_t>(static_cast<uint64_t>(wanted), 16));
  };
  cut(limits.max_binding_bytes, options.webgpu.max_binding_bytes / 16 * 16);
  cut(limits.max_buffer_bytes, options.webgpu.max_buffer_bytes);
  if (const int64_t most = options.webgpu.max_groups_per_row; most > 0)
    limits.groups_per_row = static_cast<uint32_t>(std::min<int64_t>(limits.groups_per_row, most));
  return limits;
}

plan::Options plan_options_for(const Limits& limits, const CompileOptions& options) {
  const auto schedule = options.schedule == ScheduleOrder::kBest     ? plan::Schedule::kBest
                        : options.schedule == ScheduleOrder::kGreedy ? plan::Schedule::kGreedy
                                                                     : plan::Schedule::kSource;
  const auto alignment = std::max<int64_t>(limits.binding_alignment, 16);
  return {.alignment = alignment,
          .schedule = schedule,
          .no_reuse = options.no_reuse,
          .in_place = options.in_place,
          .verify = options.verify_plan,
          .page_bytes = std::max(static_cast<int64_t>(limits.max_buffer_bytes) / alignment, int64_t{1}) * alignment,
          .guard_bytes = options.poison ? static_cast<int64_t>(kGuardBytes) + 16 : 0};
}

Memory::Memory(Device& device, const Limits& limits, const Program& program, const plan::Plan& plan,
               const CompileOptions& options, const Memory* sibling, bool shares_states)
    : device_(device),
      program_(program),
      alignment_(static_cast<uint64_t>(plan_options_for(limits, options).alignment)),
      guard_(static_cast<uint64_t>(plan_options_for(limits, options).guard_bytes)),
      taken_(program.values.size(), false),
      places_(program.values.size()) {
  if (sibling) take_over(*sibling, shares_states);
  const auto page = static_cast<uint64_t>(plan_options_for(limits, options).page_bytes);
  const auto arena_bytes = static_cast<uint64_t>(plan.arena_bytes);
  for (uint64_t at = 0; at < arena_bytes; at += page)
    arena_.push_back(add_buffer(std::min(page, arena_bytes - at), "activations"));
  const int32_t nothing = add_buffer(256, "nothing");
  // What the run gets from outside (inputs, states) and what it leaves (outputs, new states) lie in different buffers,
  // so that one can be copied to the other. Small weights share buffers, a large one has its own.
  Packer given{.label = "inputs and states", .page_bytes = page}, left{.label = "outputs", .page_bytes = page},
      weights{.label = "weights", .page_bytes = std::min(page, kWeightsBufferBytes)};
  std::map<int64_t, size_t>
      owners;  // of persistent bytes, by where the plan has them: a new state may be in its old one
  for (size_t v = 0; v < program.values.size(); ++v) {
    const plan::Value& planned = program.problem.values[v];
    const ProgramValue& value = program.values[v];
    if (planned.view_of >= 0 || value.storage == Storage::kHost) continue;
    if (taken_[v]) {
      if (planned.region == plan::Region::kPersistent) owners.emplace(plan.slots[v].offset, v);
      continue;
    }
    if (planned.size_bytes == 0) {
      places_[v] = {nothing, 0};
      continue;
    }
    const auto bytes = static_cast<uint64_t>(planned.size_bytes);
    switch (planned.region) {
      case plan::Region::kActivation: {
        const auto offset = static_cast<uint64_t>(plan.slots[v].offset);
        if (!arena_.empty()) places_[v] = {arena_[offset / page], offset % page};  // else nothing touches it
        break;
      }
      case plan::Region::kExternal:
        if (bytes > limits.max_buffer_bytes)
          fail(ErrorKind::kMemory, str("Weight ", value.label, " (", value.type, ") takes ", bytes,
                                       " bytes; the GPU's largest buffer has ", limits.max_buffer_bytes, "."));
        if (bytes > weights.page_bytes / 4)
          places_[v] = {add_buffer(round_up(bytes + guard_, alignment_), "weight"), 0};
        else
          pack(weights, v, bytes);
        break;
      case plan::Region::kPersistent:
        if (owners.emplace(plan.slots[v].offset, v).second)
          pack(value.source == Source::kStep ? left : given, v, bytes);
        break;
    }
  }
  for (const Packer* p : {&given, &left, &weights}) make(*p);
  for (size_t v = 0; v < program.values.size(); ++v) {
    const plan::Value& planned = program.problem.values[v];
    if (program.values[v].storage == Storage::kHost) continue;
    if (planned.view_of < 0 && planned.region == plan::Region::kPersistent && planned.size_bytes > 0)
      places_[v] = places_[owners.at(plan.slots[v].offset)];
  }
  for (size_t v = 0; v < program.values.size(); ++v)
    if (program.problem.values[v].view_of >= 0 && program.values[v].storage != Storage::kHost) {
      const plan::Root r = plan::root_of(program.problem, static_cast<int32_t>(v));
      places_[v] = places_[static_cast<size_t>(r.value)];
      if (program.values[v].type.shape.num_elements() == 0)
        places_[v] = {nothing, 0};  // of a value, perhaps, that nobody computes
      else
        places_[v].offset += static_cast<uint64_t>(r.offset_bytes);
    }
}

void Memory::take_over(const Memory& sibling, bool shares_states) {
  std::map<int64_t, int32_t> known;  // the sibling's values
  host::Interned interned;
  const std::vector<int64_t> theirs = common_names(sibling.program_, interned), ours = common_names(program_, interned);
  for (size_t v = 0; v < theirs.size(); ++v)
    if (theirs[v] >= 0 && sibling.places_[v].buffer >= 0) known.emplace(theirs[v], static_cast<int32_t>(v));
  std::map<int32_t, int32_t> indices;  // of the sibling's buffers, here
  for (size_t v = 0; v < ours.size(); ++v) {
    if (program_.values[v].source == Source::kState && !shares_states) continue;
    const auto found = ours[v] < 0 ? known.end() : known.find(ours[v]);
    if (found == known.end()) continue;
    const Place place = sibling.place(found->second);
    const auto [index, is_new] = indices.emplace(place.buffer, static_cast<int32_t>(buffers_.size()));
    if (is_new) {
      buffers_.push_back(sibling.buffers_[static_cast<size_t>(place.buffer)]);
      sizes_.push_back(sibling.sizes_[static_cast<size_t>(place.buffer)]);
    }
    places_[v] = {index->second, place.offset};
    taken_[v] = true;
  }
}

uint64_t Memory::guard_begin(int32_t value) const {
  const plan::Root r = plan::root_of(program_.problem, value);
  const auto bytes = static_cast<uint64_t>(program_.problem.values[static_cast<size_t>(r.value)].size_bytes);
  return round_up(places_[static_cast<size_t>(r.value)].offset + bytes, 16);  // kernels may write whole vectors
}

void Memory::pack(Packer& packer, size_t value, uint64_t bytes) const {
  const uint64_t size = round_up(bytes + guard_, alignment_);
  if (packer.pages.empty() || packer.pages.back() + size > packer.page_bytes) packer.pages.push_back(0);
  packer.items.push_back({value, packer.pages.size() - 1, packer.pages.back()});
  packer.pages.back() += size;
}

void Memory::make(const Packer& packer) {
  const auto first = static_cast<int32_t>(buffers_.size());
  for (const uint64_t bytes : packer.pages) add_buffer(bytes, packer.label);
  for (const Packer::Item& item : packer.items)
    places_[item.value] = {first + static_cast<int32_t>(item.page), item.offset};
}

int32_t Memory::add_buffer(uint64_t bytes, const std::string& label) {
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 256), 256);
  buffers_.push_back(std::make_shared<Buffer>(
      device_.make_buffer(size, WGPUBufferUsage_Storage | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc, label)));
  sizes_.push_back(size);
  ++own_buffers_;
  return static_cast<int32_t>(buffers_.size() - 1);
}

}  // namespace rlx::webgpu
