// The model that a subcommand works on: opening, compiling and running it stand here and nowhere else in the tool.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "feed.h"
#include "runtime/device_program.h"

namespace rlx::cli {

// A model file, read.
class ModelFile {
 public:
  explicit ModelFile(const std::string& path);

  const std::string& path() const { return path_; }
  const Graph& graph() const { return graph_; }
  const Manifest& manifest() const { return manifest_; }
  double load_ms() const { return load_ms_; }

 private:
  std::string path_;
  double load_ms_ = 0;  // before the graph, whose loading sets it
  Graph graph_;
  Manifest manifest_;
};

// What the command line says about where a model runs.
struct TargetArgs {
  std::string device;
  int threads = 0;  // 0: not said
};
void add_target_options(CLI::App& app, TargetArgs& args);
// The environment's switches, with the command line's on top of them.
CompileOptions compile_options(const TargetArgs& args, const DimBinding& dims);

// A model compiled, with its params and inputs.
class Session {
 public:
  Session(const ModelFile& model, Feed feed, const CompileOptions& options);

  const std::string& device() const { return executable_.device(); }
  int threads() const;  // that kernels may use
  std::vector<Port> outputs() const { return executable_.outputs(); }
  double compile_ms() const { return compile_ms_; }
  PlanInfo plan() const { return executable_.plan(); }
  const CompileReport& report() const { return executable_.report(); }

  NamedTensors run(const RunOptions& options);
  void run_again();  // the same without copies of the outputs: for measurements

 private:
  Feed feed_;
  CompileOptions options_;
  double compile_ms_ = 0;  // before the executable, whose compilation sets it
  Executable executable_;
  std::vector<Tensor> slots_;
};

// The graph as the passes of a device leave it, and what they did.
OptimizedGraph optimized(const Graph& graph, const CompileOptions& options);

// The work of one run: of every node that is no view, once. nullopt when a size is not known.
struct GraphCost {
  double flops = 0, bytes = 0;
};
std::optional<GraphCost> cost_of_graph(const Graph& graph);

// Since when, in milliseconds.
class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace rlx::cli
