#include "backends/cpu/backend.h"

#include "backends/cpu/table.h"
#include "backends/host/program.h"
#include "backends/reference/table.h"

namespace rlx::cpu {

Backend backend() {
  return {
      .name = "cpu",
      .description = "fast kernels, SIMD chosen at run time, all cores; other ops by the reference's kernels",
      .unavailable = []() -> std::optional<std::string> { return std::nullopt; },
      .compile =
          [](const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
             const CompileOptions& options) {
            const host::KernelTable tables[] = {{"cpu", kernel_table()}, {"reference", reference::kernel_table()}};
            return host::make_program(symbolic, manifest, binding, tables, options);
          },
  };
}

}  // namespace rlx::cpu
