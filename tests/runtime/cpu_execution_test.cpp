// The cpu device on random graphs. Every node by itself against the oracle, on the operands that the device itself
// computed, so that one rounding does not flip a comparison further down; then the planned run against the one that
// keeps every value, bit for bit: neither the memory plan nor the number of threads may change a result.
#include <gtest/gtest.h>

#include <unordered_map>

#include "backends/reference/evaluate.h"
#include "passes/pipeline.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "runtime/device_program.h"
#include "support/random_graph.h"
#include "support/tolerance.h"

namespace rlx::test {

namespace {

CompileOptions cpu(int threads, bool passes) {
  CompileOptions options{.device = "cpu", .threads = threads, .verify_plan = true, .poison = true};
  if (!passes)
    for (const passes::Pass& p : passes::pipeline()) options.skip_passes.emplace_back(p.name);
  return options;
}

void set_params(Executable& exe, const NamedTensors& params) {
  for (const Port& p : exe.params())
    if (const auto it = params.find(p.name); it != params.end()) exe.set_param(p.name, it->second);
}

// The graph with every value an output, named by its id.
Graph keep_all(const Graph& graph) {
  Graph out = graph;
  out.set_outputs({});
  for (const Node& node : graph.nodes())
    for (const Result& r : node.results) out.output(out.value(r.id), str("v", r.id));
  return out;
}

struct Kept {
  std::unordered_map<ValueId, Tensor> values;
  const Tensor& at(ValueId id) const { return values.at(id); }
};

void check_nodes(const Graph& graph, const Kept& kept) {
  for (const Node& node : graph.nodes()) {
    if (node.op->traits.leaf || !node.attrs.graphs().empty()) continue;  // regions: by their outputs, below
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(kept.at(id));
    const std::vector<Tensor> expected = reference::evaluate_op(*node.op, operands, node.attrs);
    for (size_t r = 0; r < expected.size(); ++r)
      EXPECT_TRUE(
          near(kept.at(node.results[r].id), expected[r], tolerance_of(*node.op, node.attrs, operands, expected[r])))
          << graph.label(node.results[r].id) << " (" << node.op->name << ")\n"
          << print(graph);
  }
}

void check(Rng& rng, const RandomGraphOptions& kind) {
  const RandomGraph r = random_graph(rng, kind);
  const Backend& backend = choose_backend(cpu(1, false));
  const Graph optimized = optimize_for(backend, r.graph, {}).graph;
  Executable all = compile(keep_all(optimized), cpu(1, false));
  Executable planned = compile(r.graph, cpu(1, true)), threaded = compile(r.graph, cpu(8, true));
  for (Executable* exe : {&all, &planned, &threaded}) set_params(*exe, r.params);
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> inputs;
    for (const Tensor& t : r.inputs) inputs.push_back(run == 0 ? t : rng.tensor(t.sizes()));
    NamedTensors given;
    const std::vector<Port> ports = planned.inputs();
    for (size_t i = 0; i < ports.size(); ++i)
      for (const Port& p : all.inputs())  // a pass may have dropped it
        if (p.name == ports[i].name) given[p.name] = inputs[i];
    const NamedTensors values = all.run(given);
    Kept kept;
    for (const Node& node : optimized.nodes())
      for (const Result& result : node.results) kept.values[result.id] = values.at(str("v", result.id));
    check_nodes(optimized, kept);
    const std::span<const Tensor> actual = planned.run_slots(inputs), again = threaded.run_slots(inputs);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i], kept.at(optimized.outputs()[i].value)) << "output " << i << "\n" << print(r.graph);
      EXPECT_EQ(again[i], actual[i]) << "with eight threads, output " << i << "\n" << print(r.graph);
    }
  }
}

}  // namespace

TEST(CpuExecution, EveryNodeOfRandomGraphsIsCloseToTheOracle) {
  for_random(250, [&](Rng& rng) { check(rng, {}); });
}

TEST(CpuExecution, LargerRandomGraphs) {
  for_random(20, [&](Rng& rng) { check(rng, {.nodes = 150}); });
}

}  // namespace rlx::test
