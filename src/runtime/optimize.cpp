// Runs the passes for a backend, and writes their reports (spec 20, 1.7).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>

#include "backends/reference/evaluate.h"
#include "core/text_table.h"
#include "core/write_file.h"
#include "passes/pipeline.h"
#include "runtime/device_program.h"

namespace rlx {

OptimizedGraph optimize_for(const Backend& backend, const Graph& graph, const CompileOptions& options) {
  if (backend.claims == nullptr) return {graph, {}};
  passes::PassContext context;
  context.claims = [&](const passes::Signature& s) {
    if (options.kernel_dispatch == KernelDispatch::kCommon && s.op.decompose != nullptr) return false;
    return backend.claims(s.op, s.attrs, s.inputs, s.outputs, options);
  };
  context.evaluate = [](const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
    return reference::evaluate_op(op, inputs, attrs);
  };
  context.options.skip = options.skip_passes;
  if (!options.batch_single_kernel) context.options.skip.emplace_back("fuse_batch_slices");
  context.limits.block_rows = options.attention_block_rows;
  context.options.reduces_any_axes = backend.reduces_any_axes;
  context.options.precision = options.precision == Precision::kF16    ? passes::PrecisionPolicy::kAutoMixed
                              : options.precision == Precision::kBf16 ? passes::PrecisionPolicy::kAutoMixedBf16
                                                                      : passes::PrecisionPolicy::kAlwaysF32;
  static std::atomic<int> all_dumped = 0;  // a model that runs in stages has a graph for each
  const auto dump = [&](std::string_view pass, const Graph& g) {
    const int dumped = all_dumped++;
    const std::string number = str(dumped < 10 ? "0" : "", dumped);
    const std::string text = print(g);
    write_file(str(options.ir_dump, "/", number, "-", pass, ".rlx"), {std::as_bytes(std::span(text))});
  };
  if (!options.ir_dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.ir_dump, error);
    if (error)
      fail(ErrorKind::kUnavailable, str("Folder '", options.ir_dump, "' cannot be made (", error.message(), ")."));
    dump("input", graph);
    context.dump = dump;
  }
  passes::OptimizeResult result = passes::optimize(graph, context);
  CompileReport report;
  for (const passes::PassRun& run : result.runs)
    report.passes.push_back(
        {std::string(run.pass), run.changed, run.ms + run.verify_ms, run.stats.nodes_before, run.stats.nodes_after});
  for (const auto& [op, n] : result.report.before) report.ops_before[std::string(op)] = n;
  for (const auto& [op, n] : result.report.after) report.ops_after[std::string(op)] = n;
  for (const passes::Miss& m : result.report.misses) report.missed.push_back({m.pass, m.node, m.op, m.guard, m.hint});
  return {std::move(result.graph), std::move(report)};
}

static int64_t count_of(const std::map<std::string, int64_t>& counts, const std::string& op) {
  const auto it = counts.find(op);
  return it == counts.end() ? 0 : it->second;
}

std::string fusion_text(const CompileReport& report) {
  std::set<std::string> ops;
  for (const auto* counts : {&report.ops_before, &report.ops_after})
    for (const auto& [op, n] : *counts) ops.insert(op);
  std::vector<std::vector<std::string>> rows = {{"op", "before", "after"}};
  for (const std::string& op : ops)
    rows.push_back({op, str(count_of(report.ops_before, op)), str(count_of(report.ops_after, op))});
  std::string out = "fusion:\n" + table_text(rows);
  for (const MissedFusion& m : report.missed)
    out += str("  not fused: ", m.pass, " at ", m.node, " (", m.op, "), ", m.guard, ": ", m.hint, "\n");
  return out;
}

std::string compile_text(const CompileReport& report, const PlanInfo& plan, const std::string& device) {
  std::string out;
  for (const PassInfo& p : report.passes)
    if (p.changed)
      out += str("  ", p.name, ": ", p.nodes_before, " nodes become ", p.nodes_after, ", ",
                 std::round(p.ms * 1000) / 1000, " ms\n");
  return str("compiled for ", device, ": ", plan.steps.size(), " steps, ", plan.static_steps.size(), " once, arena of ",
             plan.arena_bytes, " bytes, weights of ", plan.param_bytes + plan.constant_bytes, "\n", out);
}

std::string dispatch_text(const CompileReport& report, const PlanInfo& plan) {
  std::map<std::pair<std::string, std::string>, int64_t> kernels;  // op, kernel
  for (const StepInfo& s : plan.steps) ++kernels[{s.op, s.kernel}];
  // Beside kernels of a GPU, those of the cpu are the host's.
  const bool on_gpu = std::any_of(plan.steps.begin(), plan.steps.end(),
                                  [](const StepInfo& s) { return s.kernel.starts_with("webgpu/"); });
  std::vector<std::vector<std::string>> rows = {{"op", "steps", "path", "kernel"}};
  for (const auto& [key, n] : kernels) {
    const bool on_host = key.second == "reference" || (on_gpu && !key.second.starts_with("webgpu/"));
    rows.push_back({key.first, str(n), on_host ? "host" : "native", key.second});
  }
  for (const auto& [op, n] : report.ops_before)
    if (count_of(report.ops_after, op) == 0) rows.push_back({op, str(n), "rewritten", "-"});
  std::sort(rows.begin() + 1, rows.end());
  return "dispatch:\n" + table_text(rows);
}

}  // namespace rlx
