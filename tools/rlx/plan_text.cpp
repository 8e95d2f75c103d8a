#include "plan_text.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ir/text.h"

namespace rlx::cli {

namespace {

// How far the arena is above what this order of steps needs at least.
double ratio(const PlanInfo& plan) {
  if (plan.largest_live_bytes == 0) return 1;
  return static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.largest_live_bytes);
}

}  // namespace

std::string plan_text(const PlanInfo& plan, const std::string& device) {
  const auto bytes = [](int64_t n) { return n < 1024 ? bytes_text(n) : str(bytes_text(n), " (", n, " bytes)"); };
  char times[32];
  std::snprintf(times, sizeof times, "%.3f", ratio(plan));
  std::string out = str("plan: ", plan.steps.size(), " steps on ", device, "\n");
  out += table_text({{"arena", bytes(plan.arena_bytes)},
                     {"largest live set", bytes(plan.largest_live_bytes)},
                     {"arena / live set", times},
                     {"unshared", bytes(plan.unshared_bytes)},
                     {"persistent", bytes(plan.persistent_bytes)},
                     {"params", bytes(plan.param_bytes)},
                     {"constants", bytes(plan.constant_bytes)},
                     {"prepared weights", bytes(plan.static_bytes)},
                     {"in-place results", str(plan.in_place_results)},
                     {"views", str(plan.views)}});
  return out + schedule_text(plan);
}

std::string schedule_text(const PlanInfo& plan) {
  std::string out;
  std::vector<std::vector<std::string>> rows = {{"step", "node", "op", "result", "offset", "kernel"}};
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const StepInfo& s = plan.steps[i];
    rows.push_back(
        {str(i), s.node, s.op, str(s.result), s.offset_bytes < 0 ? std::string("-") : str(s.offset_bytes), s.kernel});
  }
  std::vector<std::vector<std::string>> once = {{"node", "op", "result", "kernel"}};
  for (const StepInfo& s : plan.static_steps) once.push_back({s.node, s.op, str(s.result), s.kernel});
  if (!plan.static_steps.empty()) out += "once, when weights are set:\n" + table_text(once);
  return out + "schedule (offset in the arena; '-' lies elsewhere):\n" + table_text(rows);
}

std::string passes_text(const CompileReport& report) {
  std::vector<std::vector<std::string>> rows = {{"pass", "ms", "nodes before", "after"}};
  for (const PassInfo& p : report.passes)
    rows.push_back({p.name, number_text(p.ms), str(p.nodes_before), p.changed ? str(p.nodes_after) : "unchanged"});
  return "passes:\n" + table_text(rows);
}

Json passes_json(const CompileReport& report) {
  Json passes = Json::array(), missed = Json::array();
  for (const PassInfo& p : report.passes)
    passes.push_back({{"pass", p.name},
                      {"changed", p.changed},
                      {"ms", p.ms},
                      {"nodes_before", p.nodes_before},
                      {"nodes_after", p.nodes_after}});
  for (const MissedFusion& m : report.missed)
    missed.push_back({{"pass", m.pass}, {"node", m.node}, {"op", m.op}, {"guard", m.guard}, {"hint", m.hint}});
  return {{"passes", passes}, {"not_fused", missed}};
}

Json plan_json(const PlanInfo& plan) {
  const auto list = [](const std::vector<StepInfo>& infos) {
    Json steps = Json::array();
    for (const StepInfo& s : infos) {
      Json step = {{"name", s.name}, {"node", s.node}, {"origin", s.origin}, {"op", s.op}, {"kernel", s.kernel}};
      step.update(type_json(s.result));
      step["offset_bytes"] = s.offset_bytes < 0 ? Json() : Json(s.offset_bytes);
      steps.push_back(step);
    }
    return steps;
  };
  return {{"arena_bytes", plan.arena_bytes},
          {"largest_live_bytes", plan.largest_live_bytes},
          {"arena_ratio", ratio(plan)},
          {"unshared_bytes", plan.unshared_bytes},
          {"persistent_bytes", plan.persistent_bytes},
          {"param_bytes", plan.param_bytes},
          {"constant_bytes", plan.constant_bytes},
          {"in_place_results", plan.in_place_results},
          {"views", plan.views},
          {"static_bytes", plan.static_bytes},
          {"static_steps", list(plan.static_steps)},
          {"steps", list(plan.steps)}};
}

}  // namespace rlx::cli
