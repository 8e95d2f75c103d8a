#include "model_access.h"

#include "backends/host/pool.h"
#include "ops/cost.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

// Loads, and says how long that took.
Graph load_timed(const std::string& path, double& ms) {
  progress("loading", -1);
  const Stopwatch watch;
  Graph graph = load(path);
  ms = watch.ms();
  return graph;
}

Executable compile_timed(const ModelFile& model, const Feed& feed, const CompileOptions& options, double& ms) {
  progress("compiling", 0);
  const Stopwatch watch;
  Executable executable = compile(model.graph(), options);
  for (const auto& [name, tensor] : feed.params) executable.set_param(name, tensor);
  ms = watch.ms();
  return executable;
}

}  // namespace

ModelFile::ModelFile(const std::string& path)
    : path_(path), graph_(load_timed(path, load_ms_)), manifest_(manifest_of(graph_)) {}

void add_target_options(CLI::App& app, TargetArgs& args) {
  add_value(app, "--device", args.device, "NAME", "where to run: auto (the best), cpu or reference; see 'rlx devices'");
  app.add_option("--threads", args.threads, "threads of the cpu device; by default one per core")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

CompileOptions compile_options(const TargetArgs& args, const DimBinding& dims) {
  CompileOptions options = CompileOptions::from_environment();
  if (!args.device.empty()) options.device = args.device;
  if (args.threads > 0) options.threads = args.threads;
  options.dims = dims;
  return options;
}

Session::Session(const ModelFile& model, Feed feed, const CompileOptions& options)
    : feed_(std::move(feed)), options_(options), executable_(compile_timed(model, feed_, options, compile_ms_)) {
  for (const Port& port : executable_.inputs()) slots_.push_back(feed_.inputs.at(port.name));
}

int Session::threads() const { return device() == "reference" ? 1 : host::shared_pool(options_.threads)->threads(); }

NamedTensors Session::run(const RunOptions& options) { return executable_.run(feed_.inputs, options); }
void Session::run_again() { executable_.run_slots(slots_); }

OptimizedGraph optimized(const Graph& graph, const CompileOptions& options) {
  return optimize_for(choose_backend(options.device), graph, options);
}

std::optional<GraphCost> cost_of_graph(const Graph& graph) {
  GraphCost total;
  std::vector<TensorType> inputs, results;
  for (const Node& node : graph.nodes()) {
    if (node.op->traits.leaf || node.op->view != nullptr) continue;
    inputs.clear();
    results.clear();
    for (const ValueId id : node.inputs) inputs.push_back(graph.type(id));
    for (const Result& r : node.results) results.push_back(r.type);
    for (const auto* types : {&inputs, &results})
      for (const TensorType& t : *types)
        if (!t.shape.is_static()) return std::nullopt;
    const Cost cost = cost_of(*node.op, node.attrs, inputs, results);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace rlx::cli
