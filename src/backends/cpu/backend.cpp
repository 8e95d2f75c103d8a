#include "backends/cpu/backend.h"

#include "backends/cpu/table.h"
#include "backends/host/program.h"
#include "backends/reference/table.h"

namespace rlx::cpu {

// A definition is run as it stands only where there is a fast kernel for it: the reference's is slower than its parts.
static bool claims(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs,
                   std::span<const TensorType> outputs, const CompileOptions&) {
  if (op.decompose == nullptr) return true;
  const host::KernelTable table[] = {{"cpu", kernel_table()}};
  return host::choose_kernel(table, op, {attrs, inputs, outputs}).row != nullptr;
}

Backend backend() {
  return {
      .name = "cpu",
      .description = "fast kernels, SIMD chosen at run time, all cores; other ops by the reference's kernels",
      .unavailable = [](const WebGpuOptions&) -> std::optional<std::string> { return std::nullopt; },
      .claims = claims,
      .reduces_any_axes = true,
      .compile = [](const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
                    const CompileOptions& options, const Sibling& sibling) -> std::unique_ptr<DeviceProgram> {
        const host::KernelTable tables[] = {{"cpu", kernel_table()}, {"reference", reference::kernel_table()}};
        return host::make_program(symbolic, manifest, binding, tables, options, sibling);
      },
  };
}

}  // namespace rlx::cpu
