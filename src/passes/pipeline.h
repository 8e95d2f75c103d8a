// The compile pipeline: one list of passes for every backend and every way to compile (spec 20, 1.2).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace rlx::passes {

// How results may differ from the unrewritten graph's, on the oracle.
enum class Numerics {
  kExact,      // not at all
  kReassoc,    // sums in another order, roundings in other places
  kDecompose,  // as kReassoc where the oracle has a kernel of its own for the op, else not at all
  kLossy,      // precision is given up by design
};

struct Pass {
  std::string_view name;
  void (*run)(Rewriter&);
  Numerics numerics = Numerics::kExact;
  bool in_regions = true;  // bodies of control flow are rewritten too, innermost first
  bool repeat = false;     // until it changes nothing: a replacement may need replacing
  // Null: always. Else only when the options ask for it.
  bool (*wanted)(const PassContext&) = nullptr;
};

std::span<const Pass> pipeline();
const Pass* find_pass(std::string_view name);  // its first place; null when there is none

struct PassRun {
  std::string_view pass;
  bool changed = false;
  double ms = 0;         // the rewrite itself
  double verify_ms = 0;  // checking its result
  PassStats stats;
};

// Spec 20, 1.7: how often each op occurs before and after, and what almost fused.
struct FusionReport {
  std::map<std::string_view, int64_t> before, after;
  std::vector<Miss> misses;
};

struct OptimizeResult {
  Graph graph;
  Remap remap;  // from the values of the graph that was given
  std::vector<PassRun> runs;
  FusionReport report;
};

// Runs the whole pipeline. The graph's inputs, params and states keep names, types and order, but unused inputs and
// params may be missing afterwards: who needs the interface takes it from the graph given here.
OptimizeResult optimize(Graph graph, const PassContext& context);

// One pass alone, with all checks; nullopt when it changes nothing. `done` takes what it recorded.
struct PassRecord {
  PassRun run;
  Remap remap;
  std::vector<Miss> misses;
};
std::optional<Graph> run_pass(const Graph& graph, const Pass& pass, const PassContext& context, PassRecord& record);

}  // namespace rlx::passes
