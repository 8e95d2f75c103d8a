// Random graphs: every node by itself against the oracle, on the operands that the device itself computed; then the
// planned run against the one that keeps every value, whatever buffers and bindings the device has
// (spec 40, 3: several arena pages, bindings of a few KiB).
#include <unordered_map>

#include "backends/reference/evaluate.h"
#include "passes/pipeline.h"
#include "rlx/ops.h"
#include "runtime/device_program.h"
#include "support/random_graph.h"
#include "support/tolerance.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

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

using Kept = std::unordered_map<ValueId, Tensor>;

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

// Where a value starts decides between kernels that sum in another order.
constexpr Tolerance kOtherKernel = {.rel = 1e-4, .of_max = 1e-4};

// `limited`: what the planned run may use.
void check(Rng& rng, const RandomGraphOptions& kind, const CompileOptions& limited) {
  const RandomGraph r = random_graph(rng, kind);
  const Backend& backend = choose_backend(webgpu_options());
  const Graph optimized = optimize_for(backend, r.graph, webgpu_options()).graph;
  CompileOptions no_passes = webgpu_options(true);
  no_passes.webgpu.min_loop_work = limited.webgpu.min_loop_work;
  for (const passes::Pass& p : passes::pipeline()) no_passes.skip_passes.emplace_back(p.name);
  Executable all = compile(keep_all(optimized), no_passes), planned = compile(r.graph, limited);
  for (Executable* exe : {&all, &planned}) set_params(*exe, r.params);
  for (int run = 0; run < 3; ++run) {
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
      for (const Result& result : node.results) kept[result.id] = values.at(str("v", result.id));
    check_nodes(optimized, kept);
    const std::span<const Tensor> actual = planned.run_slots(inputs);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_TRUE(near(actual[i], kept.at(optimized.outputs()[i].value), kOtherKernel))
          << "run " << run << ", output " << i << "\n"
          << print(r.graph);
    for (const StateUpdate& u : optimized.updates())
      EXPECT_TRUE(near(planned.read_state(optimized.node_of(u.state).attrs.as<ops::LeafAttrs>().name), kept.at(u.value),
                       kOtherKernel))
          << "run " << run << "\n"
          << print(r.graph);
  }
}

}  // namespace

using RandomGraphsOnWebGpu = WebGpu;

TEST_F(RandomGraphsOnWebGpu, EveryNodeIsCloseToTheOracle) {
  for_random(25, [](Rng& rng) { check(rng, {}, webgpu_options(true)); });
}

// What no binding or buffer holds, the host computes.
TEST_F(RandomGraphsOnWebGpu, AnyBufferAndBindingSizeGivesTheSame) {
  for_random(25, [](Rng& rng) {
    CompileOptions limited = webgpu_options(rng.chance(0.5));
    if (rng.chance(0.5)) limited.webgpu.min_loop_work = 0;
    limited.webgpu.max_binding_bytes = rng.integer(1, 8) * 1024;
    limited.webgpu.max_buffer_bytes = limited.webgpu.max_binding_bytes * rng.integer(1, 4);
    check(rng, {}, limited);
  });
}

}  // namespace rlx::test
