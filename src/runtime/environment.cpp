// The environment's switches, read once. Nothing else in the library looks at the environment.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "rlx/log.h"
#include "rlx/runtime.h"

extern char** environ;

namespace rlx {

namespace {

bool parse_switch(std::string_view name, std::string_view value) {
  if (value == "1" || value == "true" || value == "on") return true;
  if (value == "0" || value == "false" || value == "off" || value.empty()) return false;
  fail(ErrorKind::kInvalid, str("Environment variable ", name, " is '", value, "', not 0 or 1."));
}

ScheduleOrder parse_schedule(std::string_view name, std::string_view value) {
  if (value == "best") return ScheduleOrder::kBest;
  if (value == "greedy") return ScheduleOrder::kGreedy;
  if (value == "source") return ScheduleOrder::kSource;
  fail(ErrorKind::kInvalid, str("Environment variable ", name, " is '", value, "', not best, greedy or source."));
}

int parse_threads(std::string_view name, std::string_view value) {
  int threads = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
  require(error == std::errc() && end == value.data() + value.size() && threads >= 0, "Environment variable ", name,
          " is '", value, "', not a number of threads.");
  return threads;
}

std::vector<std::string> parse_names(std::string_view value) {
  std::vector<std::string> names;
  while (!value.empty()) {
    const size_t comma = value.find(',');
    if (comma != 0) names.emplace_back(value.substr(0, comma));
    value = comma == value.npos ? "" : value.substr(comma + 1);
  }
  return names;
}

Precision parse_precision(std::string_view name, std::string_view value) {
  if (value == "f32") return Precision::kF32;
  if (value == "f16") return Precision::kF16;
  if (value == "bf16") return Precision::kBf16;
  fail(ErrorKind::kInvalid, str("Environment variable ", name, " is '", value, "', not f32, f16 or bf16."));
}

KernelDispatch parse_dispatch(std::string_view name, std::string_view value) {
  if (value == "native") return KernelDispatch::kNative;
  if (value == "common") return KernelDispatch::kCommon;
  fail(ErrorKind::kInvalid, str("Environment variable ", name, " is '", value, "', not native or common."));
}

int64_t parse_count(std::string_view name, std::string_view value) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  require(error == std::errc() && end == value.data() + value.size() && count >= 0, "Environment variable ", name,
          " is '", value, "', not a number.");
  return count;
}

struct Switch {
  std::string_view name;
  void (*apply)(CompileOptions&, std::string_view name, std::string_view value);
};

constexpr Switch kSwitches[] = {
    {"RLX_BENCH_DISPATCH_ONLY",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.skip_readback = parse_switch(n, v); }},
    {"RLX_DEVICE", [](CompileOptions& o, std::string_view, std::string_view v) { o.device = v; }},
    {"RLX_DISPATCH_REPORT",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.dispatch_report = parse_switch(n, v); }},
    {"RLX_FK_BATCH_SINGLE_KERNEL",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.batch_single_kernel = parse_switch(n, v); }},
    {"RLX_FUSE_ATTN_THRESHOLD",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.attention_block_rows = parse_count(n, v); }},
    {"RLX_FUSION_REPORT",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.fusion_report = parse_switch(n, v); }},
    {"RLX_IR_DUMP", [](CompileOptions& o, std::string_view, std::string_view v) { o.ir_dump = v; }},
    {"RLX_KERNEL_DISPATCH",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.kernel_dispatch = parse_dispatch(n, v); }},
    {"RLX_NO_IN_PLACE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.in_place = !parse_switch(n, v); }},
    {"RLX_NO_REUSE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.no_reuse = parse_switch(n, v); }},
    {"RLX_POISON", [](CompileOptions& o, std::string_view n, std::string_view v) { o.poison = parse_switch(n, v); }},
    {"RLX_PRECISION",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.precision = parse_precision(n, v); }},
    {"RLX_SCHEDULE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.schedule = parse_schedule(n, v); }},
    {"RLX_SKIP_PASSES",
     [](CompileOptions& o, std::string_view, std::string_view v) { o.skip_passes = parse_names(v); }},
    {"RLX_THREADS", [](CompileOptions& o, std::string_view n, std::string_view v) { o.threads = parse_threads(n, v); }},
    {"RLX_TRACE_PERFETTO", [](CompileOptions& o, std::string_view, std::string_view v) { o.trace_file = v; }},
    {"RLX_VERBOSE", [](CompileOptions& o, std::string_view n, std::string_view v) { o.verbose = parse_switch(n, v); }},
    {"RLX_WEBGPU_ADAPTER", [](CompileOptions& o, std::string_view, std::string_view v) { o.webgpu.adapter = v; }},
    {"RLX_WEBGPU_LIBRARY", [](CompileOptions& o, std::string_view, std::string_view v) { o.webgpu.library = v; }},
    {"RLX_WGPU_BOUNDS_CHECKS",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.bounds_checks = parse_switch(n, v); }},
    {"RLX_WGPU_CHECK_INDICES",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.check_indices = parse_switch(n, v); }},
    {"RLX_WGPU_DEBUG_ATTN_ALIAS", [](CompileOptions& o, std::string_view n,
                                     std::string_view v) { o.webgpu.attention_alias_report = parse_switch(n, v); }},
    {"RLX_WGPU_DUMP_FLAT",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.debug.dump_flat = parse_count(n, v); }},
    {"RLX_WGPU_DUMP_NODES",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.debug.dump_nodes = parse_switch(n, v); }},
    {"RLX_WGPU_DUMP_NODES_LIMIT",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.debug.dump_limit = parse_count(n, v); }},
    {"RLX_WGPU_F16_WEIGHTS",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.f16_weights = parse_switch(n, v); }},
    {"RLX_WGPU_F32_UNIFORM",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.f32_uniform = parse_switch(n, v); }},
    {"RLX_WGPU_FORCE_INPUT_UPLOAD", [](CompileOptions& o, std::string_view n,
                                       std::string_view v) { o.webgpu.force_input_upload = parse_switch(n, v); }},
    {"RLX_WGPU_KERNELS", [](CompileOptions& o, std::string_view, std::string_view v) { o.webgpu.kernels = v; }},
    {"RLX_WGPU_MATMUL_F32_ONLY",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.matmul_f32_only = parse_switch(n, v); }},
    {"RLX_WGPU_NAN_TRACE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.debug.nan_trace = parse_switch(n, v); }},
    {"RLX_WGPU_NO_F16_SHADOW",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.f16_mirror = !parse_switch(n, v); }},
    {"RLX_WGPU_NO_HOST_STEPS",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.no_host_steps = parse_switch(n, v); }},
    {"RLX_WGPU_NO_SUBGROUPS",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.subgroups = !parse_switch(n, v); }},
    {"RLX_WGPU_NO_PACKED_BSHD_ATTN", [](CompileOptions& o, std::string_view n,
                                        std::string_view v) { o.webgpu.packed_attention = !parse_switch(n, v); }},
    {"RLX_WGPU_READ_ONCE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.read_once = parse_switch(n, v); }},
    {"RLX_WGPU_SCHEDULE",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.webgpu.schedule_report = parse_switch(n, v); }},
    {"RLX_VERIFY_PLAN",
     [](CompileOptions& o, std::string_view n, std::string_view v) { o.verify_plan = parse_switch(n, v); }},
};
// Read by the tool, the tests and ./dev, not by the library.
constexpr std::string_view kForeign[] = {"RLX_CACHE", "RLX_FUZZ_SECONDS", "RLX_RECORDED_WGSL", "RLX_SEED",
                                         "RLX_TESTS_WITHOUT_WEBGPU"};

CompileOptions read() {
  CompileOptions options;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("RLX_")) continue;
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals), value = equals == text.npos ? "" : text.substr(equals + 1);
    bool known = false;
    for (const std::string_view f : kForeign) known |= f == name;
    for (const Switch& s : kSwitches)
      if (s.name == name) {
        s.apply(options, name, value);
        known = true;
      }
    if (!known) log(LogLevel::kWarning, str("Environment variable ", name, " is not one that rlx knows."));
  }
  return options;
}

}  // namespace

CompileOptions CompileOptions::from_environment() {
  static const CompileOptions options = read();  // an Error leaves it unset, so that the next call says it again
  return options;
}

}  // namespace rlx
