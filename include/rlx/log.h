// Warnings, reports and progress. The library prints nothing: they go to callbacks, which by default drop them.
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

// How far a long call is: what it does just now, and which part of that is done (0 to 1; less than 0: who knows). Said
// often and from any thread; who shows it chooses when. By default nobody listens, which costs nothing.
using ProgressCallback = std::function<void(std::string_view doing, double done)>;
void set_progress(ProgressCallback callback);
void progress(std::string_view doing, double done);

}  // namespace rlx
