#include "backends/reference/backend.h"

#include "backends/host/program.h"
#include "backends/reference/table.h"

namespace rlx::reference {

Backend backend() {
  return {
      .name = "reference",
      .description = "the oracle: plain loops in double, every op, one thread",
      .unavailable = [](const WebGpuOptions&) -> std::optional<std::string> { return std::nullopt; },
      .claims = nullptr,
      .compile = [](const Graph& symbolic, const Manifest& manifest, const DimBinding& binding,
                    const CompileOptions& options, const Sibling& sibling) -> std::unique_ptr<DeviceProgram> {
        const host::KernelTable tables[] = {{"reference", kernel_table()}};
        CompileOptions alone = options;
        alone.threads = 1;  // no kernel here uses another: none is started
        return host::make_program(symbolic, manifest, binding, tables, alone, sibling);
      },
  };
}

}  // namespace rlx::reference
