#include <algorithm>
#include <array>

#include "backends/cpu/backend.h"
#include "backends/reference/backend.h"
#include "runtime/device_program.h"

namespace rlx {

// Best first: "auto" takes the first that is available. A backend is added by a row here and nothing else.
std::span<const Backend> backends() {
  static const std::array<Backend, 2> kBackends = {cpu::backend(), reference::backend()};
  return kBackends;
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> out;
  for (const Backend& b : backends()) {
    const auto why_not = b.unavailable();
    out.push_back({std::string(b.name), std::string(b.description), !why_not, why_not.value_or("")});
  }
  return out;
}

const Backend& choose_backend(std::string_view device) {
  std::string known = "auto";
  for (const Backend& b : backends()) {
    const auto why_not = b.unavailable();
    if (device == "auto" && !why_not) return b;
    known += str(", ", b.name);
    if (b.name != device) continue;
    if (why_not) fail(ErrorKind::kUnavailable, str("Device '", device, "' is not available: ", *why_not));
    return b;
  }
  fail(ErrorKind::kUnavailable, str("There is no device '", device, "'; there are: ", known, "."));
}

}  // namespace rlx
