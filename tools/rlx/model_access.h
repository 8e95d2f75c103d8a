// The model that a subcommand works on: opening, compiling and running it stand here and nowhere else in the tool.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "feed.h"
#include "rlx/model.h"
#include "runtime/device_program.h"

namespace rlx::cli {

// What the command line says about where a model runs.
struct TargetArgs {
  std::string device;
  int threads = 0;  // 0: not said
};
void add_target_options(CLI::App& app, TargetArgs& args);
// The environment's options, with those on top.
CompileOptions options_of(const TargetArgs& args);

// A model file, read, with inputs to run it on. The options are the environment's, the command line's on top of them.
class ModelFile {
 public:
  // Without inputs yet: only what the file says, with the sizes of `dims` (--dim).
  ModelFile(const std::string& path, const TargetArgs& target, const std::vector<std::string>& dims);
  // With inputs. Where a model's shapes need sizes of a run it is read again, now that they are known: most such models
  // are one graph then.
  ModelFile(const std::string& path, const TargetArgs& target, const FeedArgs& feed);

  const std::string& path() const { return path_; }
  double load_ms() const { return load_ms_; }
  const std::vector<ModelPort>& inputs() const { return model_.inputs(); }
  const std::vector<ModelPort>& outputs() const { return model_.outputs(); }

  // The whole model; null when it runs in stages, which depend on the data of a run.
  const Graph* graph() const { return model_.graph(); }
  const std::string& why_staged() const { return model_.why_staged(); }
  // The graph, or one that has nothing but the model's inputs: for names and sizes.
  const Graph& interface() const { return model_.graph() ? *model_.graph() : interface_; }

  const Feed& feed() const { return feed_; }
  const CompileOptions& options() const { return options_; }  // the sizes of the feed among them
  Model& model() { return model_; }

 private:
  void take_interface();
  void fix_sizes();

  std::string path_;
  CompileOptions options_;
  double load_ms_ = 0;  // before the model, whose loading sets it
  Model model_;
  Graph interface_;
  Feed feed_;
};

// A model compiled, to be run on its feed.
class Session {
 public:
  explicit Session(ModelFile& model);  // which must outlive it

  std::string device() const;
  int threads() const;  // that kernels may use
  // Of a model that runs in stages 0 here: it is compiled while it first runs.
  double compile_ms() const { return compile_ms_; }

  NamedTensors run(const RunOptions& options);
  void run_again();  // the same, without copies of the outputs where that is possible: for measurements

  // The compiled parts of the last run: one, unless the model runs in stages.
  const std::vector<ModelStage>& stages() const { return stages_; }
  int64_t arena_bytes() const;

 private:
  ModelFile& file_;
  double compile_ms_ = 0;  // before the executable, whose compilation sets it
  std::optional<Executable> executable_;
  std::vector<Tensor> slots_;
  std::vector<ModelStage> stages_;
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
