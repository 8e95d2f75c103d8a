// Planned execution against the plain evaluator, bit for bit, on random graphs: several runs with states, every planner
// option, dying bytes poisoned (M7, M8, M12 of spec 20, 2.5).
#include <gtest/gtest.h>

#include "backends/reference/evaluate.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/random_graph.h"

namespace rlx::test {

// One run of the graph without planner: outputs, and the states' new values.
static std::vector<Tensor> step(const RandomGraph& r, const Graph& bound, std::span<const Tensor> inputs,
                                NamedTensors& states) {
  Graph with_updates = bound;
  for (const StateUpdate& u : bound.updates())
    with_updates.output(with_updates.value(u.value), str("new state ", u.state));
  std::vector<Tensor> out = reference::evaluate(with_updates, inputs, r.params, states);
  for (size_t i = 0; i < bound.updates().size(); ++i) {
    const auto& name = bound.node_of(bound.updates()[i].state).attrs.as<ops::LeafAttrs>().name;
    states[name] = out[bound.outputs().size() + i].clone();
  }
  out.resize(bound.outputs().size());
  for (Tensor& t : out) t = t.clone();
  return out;
}

static bool compare(Rng& rng, const CompileOptions& options, const RandomGraphOptions& kind) {
  RandomGraph r = random_graph(rng, kind);
  const DimBinding sizes = kind.symbols ? DimBinding{{symbols::kBatch, 4}} : DimBinding{};
  const Graph bound = [&] {
    try {
      return bind(r.graph, sizes);
    } catch (const Error&) {  // a symbol is broadcast with a size that is not its own
      return Graph();
    }
  }();
  if (bound.nodes().empty()) return false;
  NamedTensors states;
  for (const Node* s : bound.leaves(ops::state))
    states[s->name] = Tensor(s->results[0].type.dtype, s->results[0].type.shape.sizes());
  Executable exe = compile(r.graph, options);
  for (const auto& [name, value] : r.params)
    for (const Port& p : exe.params())
      if (p.name == name) exe.set_param(name, value);
  for (int run = 0; run < 3; ++run) {
    std::vector<Tensor> inputs;
    for (const Tensor& t : r.inputs) inputs.push_back(run == 0 ? t : rng.tensor(t.sizes()));
    const std::vector<Tensor> expected = step(r, bound, inputs, states);
    const std::span<const Tensor> actual = exe.run_slots(inputs);
    EXPECT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(actual[i], expected[i]) << "run " << run << ", output " << i << "\n" << print(r.graph);
    for (const auto& [name, value] : states)
      EXPECT_EQ(exe.read_state(name), value) << "run " << run << ", state " << name << "\n" << print(r.graph);
  }
  return true;
}

TEST(PlannedExecution, EqualsThePlainEvaluatorWithEveryOption) {
  std::vector<CompileOptions> all;
  for (const ScheduleOrder schedule : {ScheduleOrder::kBest, ScheduleOrder::kGreedy, ScheduleOrder::kSource})
    for (const bool no_reuse : {false, true})
      for (const bool in_place : {true, false})
        all.push_back({.device = "reference",
                       .arena_alignment = in_place ? 64 : 16,
                       .schedule = schedule,
                       .no_reuse = no_reuse,
                       .in_place = in_place,
                       .verify_plan = true,
                       .poison = !no_reuse});
  for_random(400, [&](Rng& rng) {
    compare(rng, all[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(all.size()) - 1))], {});
  });
}

TEST(PlannedExecution, EqualsThePlainEvaluatorOnLargerGraphs) {
  for_random(30, [&](Rng& rng) {
    compare(rng, {.device = "reference", .verify_plan = true, .poison = true}, {.nodes = 200});
  });
}

TEST(PlannedExecution, EqualsThePlainEvaluatorWithSymbols) {
  int compared = 0;
  const auto enough = [&] { return compared > 100; };
  for_random(150, enough, [&](Rng& rng) {
    compared += compare(rng, {.device = "reference", .verify_plan = true, .poison = true}, {.symbols = true}) ? 1 : 0;
  });
  EXPECT_TRUE(enough()) << compared;
}

}  // namespace rlx::test
