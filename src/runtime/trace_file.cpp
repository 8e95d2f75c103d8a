#include "runtime/trace_file.h"

#include <cstdio>
#include <fstream>
#include <mutex>
#include <set>

#include "rlx/error.h"

namespace rlx {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string event(std::string_view name, std::string_view category, int64_t track, int64_t begin_ns, int64_t end_ns,
                  const std::string& args) {
  return str("{\"name\": ", quoted(name), ", \"cat\": ", quoted(category),
             ", \"ph\": \"X\", \"pid\": 1, \"tid\": ", track, ", \"ts\": ", static_cast<double>(begin_ns) * 1e-3,
             ", \"dur\": ", static_cast<double>(end_ns - begin_ns) * 1e-3, ", \"args\": {", args, "}}");
}

}  // namespace

void append_trace(const std::string& path, int64_t track, const std::string& device, int64_t begin_ns, int64_t end_ns,
                  std::span<const StepTrace> steps) {
  std::string text =
      event("run", "run", track, begin_ns, end_ns, str("\"device\": ", quoted(device), ", \"steps\": ", steps.size()));
  for (const StepTrace& s : steps)
    text += ",\n" + event(s.step.name, s.once ? "prepare" : "step", track, s.begin_ns, s.end_ns,
                          str("\"op\": ", quoted(s.step.op), ", \"node\": ", quoted(s.step.node),
                              ", \"origin\": ", quoted(s.step.origin), ", \"kernel\": ", quoted(s.step.kernel),
                              ", \"result\": ", quoted(str(s.step.result)), ", \"flops\": ", s.flops,
                              ", \"bytes\": ", s.bytes));
  static std::mutex mutex;
  static std::set<std::string> started;
  const std::lock_guard lock(mutex);
  constexpr std::string_view kEnd = "\n]\n";  // which the next run overwrites
  std::fstream file;
  if (!started.insert(path).second) file.open(path, std::ios::in | std::ios::out);
  if (file.is_open()) {
    file.seekp(-static_cast<std::streamoff>(kEnd.size()), std::ios::end) << ",\n";
  } else {
    file.open(path, std::ios::out | std::ios::trunc);
    file << "[\n";
  }
  file << text << kEnd;
  file.flush();
  if (!file) fail(ErrorKind::kUnavailable, str("Trace file '", path, "' cannot be written."));
}

}  // namespace rlx
