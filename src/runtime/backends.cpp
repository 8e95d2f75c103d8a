#include <algorithm>
#include <array>
#include <mutex>

#include "backends/cpu/backend.h"
#include "backends/reference/backend.h"
#include "backends/webgpu/backend.h"
#include "rlx/log.h"
#include "runtime/device_program.h"

namespace rlx {

// Best first: "auto" takes the first that is available. A backend is added by a row here and nothing else.
std::span<const Backend> backends() {
  static const std::array<Backend, 3> kBackends = {webgpu::backend(), cpu::backend(), reference::backend()};
  return kBackends;
}

std::vector<DeviceInfo> devices() {
  WebGpuOptions options = CompileOptions::from_environment().webgpu;
  options.adapter.clear();  // all are listed, also when a name was misspelt
  std::vector<DeviceInfo> out;
  for (const Backend& b : backends()) {
    const auto why_not = b.unavailable(options);
    out.push_back({std::string(b.name), std::string(b.description), !why_not, why_not.value_or("")});
    if (!why_not && b.details) out.back().adapters = b.details(options);
  }
  return out;
}

// Which library and adapter there are is a fact of the machine: what options leave open, the environment says, also
// where a program makes all its options itself.
static WebGpuOptions on_this_machine(WebGpuOptions options) {
  const WebGpuOptions given = CompileOptions::from_environment().webgpu;
  if (options.library.empty()) options.library = given.library;
  if (options.adapter.empty()) options.adapter = given.adapter;
  return options;
}

// The first backend that "auto" may take. Why better ones are not taken is said once per process.
static const Backend& best_backend(const WebGpuOptions& options) {
  static std::once_flag said;
  std::string why;
  LogLevel level = LogLevel::kInfo;
  for (const Backend& b : backends()) {
    auto why_not = b.unavailable(options);
    if (why_not) level = LogLevel::kWarning;  // something is missing that one may want to install
    if (!why_not && b.not_by_default) try {
        why_not = b.not_by_default(options);
      } catch (const Error& e) {
        why_not = e.message();
        level = LogLevel::kWarning;
      }
    if (why_not) {
      why += str(why.empty() ? "" : " ", "Device '", b.name, "' is not used: ", *why_not);
      continue;
    }
    if (!why.empty()) std::call_once(said, [&] { log(level, why); });
    return b;
  }
  fail(ErrorKind::kUnavailable, "There is no device.");
}

CompileOptions with_device(CompileOptions options) {
  if (const size_t colon = options.device.find(':'); colon != options.device.npos)
    options.webgpu.adapter = options.device.substr(colon + 1);
  const Backend& backend = choose_backend(options);
  options.device = backend.name;
  if (backend.details) options.webgpu = on_this_machine(options.webgpu);
  return options;
}

const Backend& choose_backend(const CompileOptions& options) {
  if (options.device == "auto") return best_backend(on_this_machine(options.webgpu));
  const size_t colon = options.device.find(':');
  const std::string name = options.device.substr(0, colon);
  std::string known = "auto";
  for (const Backend& b : backends()) {
    known += str(", ", b.name);
    if (b.name != name || (colon != options.device.npos && b.details == nullptr)) continue;
    WebGpuOptions wanted = options.webgpu;
    if (colon != options.device.npos) wanted.adapter = options.device.substr(colon + 1);
    const auto why_not = b.unavailable(b.details ? on_this_machine(wanted) : wanted);
    if (why_not) fail(ErrorKind::kUnavailable, str("Device '", name, "' is not available: ", *why_not));
    return b;
  }
  fail(ErrorKind::kUnavailable, str("There is no device '", options.device, "'; there are: ", known, "."));
}

}  // namespace rlx
