// Runs an ONNX model. Most models become one graph, whose sizes may be symbols. Where shapes depend on data, a run is
// recorded as stages: run a part, look at some of its values, build the next part for them. Stages are kept: a later
// run with the same sizes and the same values builds and compiles nothing.
#pragma once

#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "import/onnx/importer.h"
#include "rlx/model.h"

namespace rlx::onnx {

struct ModelPort {
  std::string name;
  TypeProto type;
  std::string text;                  // for people: "float [batch, 3]"
  std::optional<TensorType> tensor;  // where the file says it, with symbols of Session::symbols()
};

// What a caller wants to know of a run besides its results.
struct Watch {
  std::vector<StepTrace>* trace = nullptr;
  std::vector<ModelStage>* stages = nullptr;  // the compiled parts, in order
};

// What a model asks for beyond the machine's memory is our Error, wherever it is noticed.
template <class F>
auto guard_memory(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  fail(ErrorKind::kMemory, "The model needs more memory than there is.");
}

class Session {
 public:
  // `sizes`: of named dims, where they are known before the first run.
  Session(std::shared_ptr<const ModelSource> model, CompileOptions options,
          const std::map<std::string, int64_t>& sizes);
  ~Session();

  // Inputs that a run must give: those without an initializer.
  const std::vector<ModelPort>& inputs() const { return inputs_; }
  const std::vector<ModelPort>& outputs() const { return outputs_; }

  // The model as one graph; null when that needs the values or sizes of a run, why_not() says which.
  const Graph* graph() const { return graph_ ? &*graph_ : nullptr; }
  const std::string& why_not() const { return why_not_; }
  const SymbolTable& symbols() const { return graph_ ? graph_->symbols() : symbols_; }
  // The compiled graph; null when there is no single one.
  Executable* executable();

  // Outputs in the model's order.
  std::vector<HostValue> run(const std::map<std::string, HostValue>& inputs, const Watch& watch = {});

  // How many programs were compiled so far: of the whole graph for some sizes, or of a stage.
  int64_t compiles() const;

 private:
  struct Step;
  struct Branch;
  struct Feed;
  class Recorder;
  using Produced = std::vector<NamedTensors>;

  void import_symbolic();
  void describe(ModelPort& port, const std::map<std::string, int64_t>& sizes);
  void check_inputs(const std::map<std::string, HostValue>& inputs) const;
  std::vector<HostValue> run_checked(const std::map<std::string, HostValue>& inputs);
  std::vector<HostValue> run_staged(const std::map<std::string, HostValue>& inputs);
  std::unique_ptr<Step> new_step();
  void execute(Step& step, Produced& produced, const NamedTensors& inputs);

  std::shared_ptr<const ModelSource> model_;
  CompileOptions options_;
  std::vector<ModelPort> inputs_, outputs_;
  std::optional<Graph> graph_;
  std::vector<ElemType> output_elems_;  // of graph_
  std::string why_not_;
  SymbolTable symbols_;  // of the ports
  std::unique_ptr<Executable> executable_;
  std::map<std::string, std::unique_ptr<Step>> roots_;  // by sizes of inputs
  Watch watch_;                                         // of the run in progress
  int64_t num_steps_ = 0;                               // made since roots_ was empty
  int64_t stage_compiles_ = 0;
};

// Reads and checks a model: structure, names and ops; throws what a user should read.
std::shared_ptr<const ModelSource> open_model(const std::string& path);
std::shared_ptr<const ModelSource> parse_source(std::string_view bytes, std::shared_ptr<const void> owner,
                                                std::string folder, std::string where);

}  // namespace rlx::onnx
