// Warnings and reports. The library prints nothing: they go to one callback, which by default drops them.
#pragma once

#include <functional>
#include <string_view>

namespace rlx {

enum class LogLevel {
  kInfo,
  kReport,  // asked for by an option: several lines, to be shown as they are
  kWarning,
};
using LogCallback = std::function<void(LogLevel, std::string_view)>;

// Replaces the callback; an empty one drops everything. May be called from any thread.
void set_log(LogCallback callback);
void log(LogLevel level, std::string_view text);

}  // namespace rlx
