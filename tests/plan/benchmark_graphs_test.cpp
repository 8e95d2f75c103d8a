// The plans of real models' shapes: at most 5 % above the largest live set (spec 20, 2.5 M10), and every invariant.
#include <gtest/gtest.h>

#include "graphs.h"
#include "rlx/runtime.h"

namespace rlx::test {

TEST(BenchmarkGraphs, ArenaIsWithinFivePercentOfTheLargestLiveSet) {
  for (const bench::NamedGraph& g : bench::all_graphs()) {
    SCOPED_TRACE(g.name);
    const Graph graph = g.make();
    const PlanInfo plan = compile(graph, {.device = "reference", .verify_plan = true}).plan();
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.largest_live_bytes));
    EXPECT_LT(plan.arena_bytes, plan.unshared_bytes / 2);
    EXPECT_EQ(print(parse(print(graph))), print(graph));
  }
}

// The passes and the cpu device's kernel table know everything that these models are made of.
TEST(BenchmarkGraphs, OnCpuNoStepFallsBackToTheReference) {
  for (const bench::NamedGraph& g : bench::all_graphs()) {
    SCOPED_TRACE(g.name);
    const PlanInfo plan = compile(g.make(), {.device = "cpu", .verify_plan = true}).plan();
    for (const StepInfo& step : plan.steps) EXPECT_TRUE(step.kernel.starts_with("cpu")) << step.op << ' ' << step.node;
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.largest_live_bytes));
  }
}

TEST(BenchmarkGraphs, TheDecodersCacheIsUpdatedInPlace) {
  const Graph graph = bench::transformer_decoder();
  const PlanInfo plan = compile(graph, {.device = "reference"}).plan();
  int64_t cache_bytes = 0;
  for (const StateUpdate& u : graph.updates()) cache_bytes += graph.type(u.state).size_bytes();
  const int64_t logits = graph.type(graph.outputs()[0].value).size_bytes();
  EXPECT_LT(plan.persistent_bytes, cache_bytes + logits + 4096);  // the caches once, not twice
}

}  // namespace rlx::test
