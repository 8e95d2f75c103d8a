#include "backends/webgpu/backend.h"

#include "backends/webgpu/lower.h"
#include "rlx/ops.h"

namespace rlx::webgpu {

namespace {

std::optional<std::string> unavailable(const WebGpuOptions& options) {
  try {
    choose_adapter(adapters(options), options.adapter);
    return std::nullopt;
  } catch (const Error& e) {
    return e.message();
  }
}

// A software adapter is slower than the cpu device, so that nobody gets it without asking. Throws where another one
// gives no device.
std::optional<std::string> not_by_default(const WebGpuOptions& options) {
  const std::vector<AdapterFacts> list = adapters(options);
  const AdapterFacts& chosen = list[choose_adapter(list, options.adapter)];
  if (chosen.software) return str("Its adapter '", chosen.name, "' is a software one.");
  Device::open(options);
  return std::nullopt;
}

bool claims(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
            std::span<const TensorType> outputs, const CompileOptions& options) {
  if (op.decompose == nullptr) return true;
  return find_lowering({op, attrs, inputs, outputs}, *Device::open(options.webgpu)) != nullptr;
}

// What is used is known when a device has been made: features are checked then.
AdapterFacts opened(const WebGpuOptions& options, size_t index, const AdapterFacts& listed) {
  try {
    return Device::open({.library = options.library, .adapter = str(index)})->facts();
  } catch (const Error&) {
    return listed;
  }
}

std::vector<DeviceDetail> details(const WebGpuOptions& options) {
  std::vector<DeviceDetail> out;
  for (const AdapterFacts& listed : adapters(options)) {
    const AdapterFacts a = opened(options, out.size(), listed);
    out.push_back({.name = a.name,
                   .driver = a.driver,
                   .type = a.type,
                   .features = a.feature_names,
                   .max_buffer_bytes = static_cast<int64_t>(a.limits.max_buffer_bytes),
                   .max_binding_bytes = static_cast<int64_t>(a.limits.max_binding_bytes),
                   .workgroup_bytes = a.limits.workgroup_bytes,
                   .workgroup_threads = a.limits.workgroup_threads,
                   .storage_bindings = a.limits.storage_bindings,
                   .subgroup_min = a.features.subgroup_min,
                   .subgroup_max = a.features.subgroup_max,
                   .uses_f16 = a.features.f16,
                   .uses_subgroups = a.features.subgroups,
                   .uses_timestamps = a.features.timestamps});
  }
  return out;
}

// Ops that no kernel here runs, and why.
struct HostReason {
  const OpDef* op;
  std::string_view why;
};
const HostReason kOnHost[] = {
    {&ops::batched_dense_solve, "elimination is a chain of small steps, and the oracle's pivots are double"},
    {&ops::dense_solve, "elimination is a chain of small steps, and the oracle's pivots are double"},
    {&ops::det, "elimination is a chain of small steps, and the oracle's pivots are double"},
    {&ops::scan_backward, "its region runs once per step on the cpu"},
};

}  // namespace

std::string how_it_runs(const OpDef& op) {
  if (op.traits.leaf) return "leaf";
  for (const LoweringRow& row : lowering_table())
    if (row.op == &op) return "kernel";
  if (op.decompose != nullptr) return "decomposition";
  if (&op == &ops::reshape) return "view";
  if (&op == &ops::if_ || &op == &ops::while_ || &op == &ops::scan) return "loop";
  for (const HostReason& r : kOnHost)
    if (r.op == &op) return str("host: ", r.why);
  return "host: no reason is stated";
}

Backend backend() {
  return {
      .name = "webgpu",
      .description = "any GPU, by Vulkan, Metal or Direct3D 12; ops without a GPU kernel run on the cpu",
      .unavailable = unavailable,
      .not_by_default = not_by_default,
      .details = details,
      .claims = claims,
      .compile =
          [](const Graph& symbolic, const Manifest& manifest, const DimBinding& binding, const CompileOptions& options,
             const Sibling& sibling) {
            if (!options.webgpu.kernels.empty()) check_kernel_folder(options.webgpu.kernels);
            const std::shared_ptr<Device> device = Device::open(options.webgpu);
            return make_program(lower(symbolic, manifest, binding, *device, options), device, options, sibling);
          },
  };
}

}  // namespace rlx::webgpu
