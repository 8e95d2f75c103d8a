// Runs as events that Perfetto and Chrome show, appended to one file by all executables of the process (spec 40, 6).
#pragma once

#include <span>
#include <string>

#include "rlx/runtime.h"

namespace rlx {

// The format is Chrome's array of trace events, whose end may be missing. `track` tells executables apart.
void append_trace(const std::string& path, int64_t track, const std::string& device, int64_t begin_ns, int64_t end_ns,
                  std::span<const StepTrace> steps);

}  // namespace rlx
