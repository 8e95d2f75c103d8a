// Model: a model file, opened and ready to run on a device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rlx/runtime.h"

namespace rlx {

// An input or output of a model.
struct ModelPort {
  std::string name;
  std::string text;                // for people: "float [batch, 3, 224, 224]"
  std::optional<TensorType> type;  // when the file says it; sizes are numbers or symbols of Model::symbols()
};

// A compiled part of a run, and what it was given.
struct ModelStage {
  const Executable* executable;
  NamedTensors inputs;
};

// Sizes of a model's symbols by name, for models whose graph depends on them: {{"batch", 1}, {"height", 480}}.
using ModelSizes = std::map<std::string, int64_t>;

// Most models are one graph. Where shapes depend on the data of a run, a model is run in stages: a part is run, some of
// its values are looked at, and the next part is compiled for them and kept for later runs.
//
// Threads: as an Executable, one at a time.
class Model {
 public:
  // .onnx or .rlx, by the extension. Throws on a file that is malformed or needs something that rlx lacks.
  static Model open(const std::string& path, const CompileOptions& options = CompileOptions::from_environment(),
                    const ModelSizes& sizes = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::vector<ModelPort>& inputs() const;  // those that a run must give
  const std::vector<ModelPort>& outputs() const;
  const SymbolTable& symbols() const;

  // The whole model as a graph, and compiled; null for a model that runs in stages, and why_staged() says why.
  const Graph* graph() const;
  Executable* executable();
  const std::string& why_staged() const;

  // Every input by name. A sequence of tensors comes back as name/0, name/1 …; strings are an Error. `stages` takes the
  // compiled parts that ran, in order; they stay valid until the next run.
  NamedTensors run(const NamedTensors& inputs, const RunOptions& options = {},
                   std::vector<ModelStage>* stages = nullptr);

  struct Impl;

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx
