#include "model_access.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "backends/host/pool.h"
#include "model_store.h"
#include "ops/cost.h"
#include "rlx/log.h"

namespace rlx::cli {

namespace {

// Language models are no graphs: they have commands of their own.
void refuse_language_model(const std::string& path) {
  std::error_code ignored;
  const bool is_one = path.ends_with(".gguf") || path.ends_with(".safetensors") ||
                      std::filesystem::exists(std::filesystem::path(path) / "config.json", ignored) ||
                      (is_short_name(path) && !std::filesystem::exists(path, ignored));
  require(!is_one, "'", path,
          "' is a language model or an encoder of texts, which rlx generate, chat, embed, tokenize, "
          "perplexity and bench take; this command takes .onnx and .rlx files.");
}

Model open_timed(const std::string& path, const CompileOptions& options, const ModelSizes& sizes, double& ms) {
  refuse_language_model(path);
  progress("loading", -1);
  const Stopwatch watch;
  Model model = Model::open(path, options, sizes);
  ms += watch.ms();
  return model;
}

Executable compile_timed(const Graph& graph, const Feed& feed, const CompileOptions& options, double& ms) {
  progress("compiling", 0);
  const Stopwatch watch;
  Executable executable = compile(graph, options);
  for (const auto& [name, tensor] : feed.params) executable.set_param(name, tensor);
  ms += watch.ms();
  return executable;
}

}  // namespace

CompileOptions options_of(const TargetArgs& args) {
  CompileOptions options = CompileOptions::from_environment();
  if (!args.device.empty()) options.device = args.device;
  if (args.threads > 0) options.threads = args.threads;
  return options;
}

void add_target_options(CLI::App& app, TargetArgs& args) {
  add_value(app, "--device", args.device, "NAME",
            "where to run: auto (the default: a GPU, or else the cpu), webgpu, webgpu:ADAPTER (index, part of its "
            "name, or its type, such as software), cpu or reference; see 'rlx devices'");
  app.add_option("--threads", args.threads, "threads of the cpu device; by default one per core")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

ModelFile::ModelFile(const std::string& path, const TargetArgs& target, const std::vector<std::string>& dims)
    : path_(path), options_(options_of(target)), model_(open_timed(path, options_, {}, load_ms_)) {
  take_interface();
  feed_.dims = parse_dims(interface(), dims);
  fix_sizes();
  options_.dims = feed_.dims;
}

ModelFile::ModelFile(const std::string& path, const TargetArgs& target, const FeedArgs& feed)
    : path_(path), options_(options_of(target)), model_(open_timed(path, options_, {}, load_ms_)) {
  take_interface();
  feed_ = make_feed(interface(), inputs(), feed);
  fix_sizes();
  options_.dims = feed_.dims;
}

void ModelFile::take_interface() {
  interface_ = Graph("main");
  interface_.symbols() = model_.symbols();
  for (const ModelPort& port : model_.inputs())
    if (port.type) interface_.input(port.name, *port.type);
}

void ModelFile::fix_sizes() {
  if (graph() != nullptr || feed_.dims.empty()) return;
  ModelSizes sizes;
  for (const auto& [id, size] : feed_.dims.sizes())
    if (const std::string* name = interface_.symbols().find_name(id)) sizes[*name] = size;
  if (sizes.empty()) return;
  model_ = open_timed(path_, options_, sizes, load_ms_);
  take_interface();
  // The symbols are others now, or none.
  std::map<std::string, std::vector<int64_t>> input_sizes;
  for (const auto& [name, tensor] : feed_.inputs) input_sizes[name] = tensor.sizes();
  feed_.dims = infer_binding(interface(), input_sizes);
}

Session::Session(ModelFile& model) : file_(model) {
  const Graph* graph = model.graph();
  if (graph == nullptr) return;
  executable_ = compile_timed(*graph, model.feed(), model.options(), compile_ms_);
  for (const Port& port : executable_->inputs()) slots_.push_back(model.feed().inputs.at(port.name));
  stages_.push_back({&*executable_, model.feed().inputs});
}

std::string Session::device() const { return std::string(choose_backend(file_.options()).name); }

int Session::threads() const {
  return device() == "reference" ? 1 : host::shared_pool(file_.options().threads)->threads();
}

NamedTensors Session::run(const RunOptions& options) {
  if (executable_) return executable_->run(file_.feed().inputs, options);
  stages_.clear();
  return file_.model().run(file_.feed().inputs, options, &stages_);
}

void Session::run_again() {
  if (executable_)
    executable_->run_slots(slots_);
  else
    run({});
}

int64_t Session::arena_bytes() const {
  int64_t bytes = 0;
  for (const ModelStage& stage : stages_) bytes += stage.executable->plan().arena_bytes;
  return bytes;
}

OptimizedGraph optimized(const Graph& graph, const CompileOptions& options) {
  return optimize_for(choose_backend(options), graph, with_device(options));
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
