#include "rlx/model.h"

#include <algorithm>

#include "import/onnx/elem_type.h"
#include "import/onnx/session.h"

namespace rlx {

// A graph of our own, or an ONNX session.
struct Model::Impl {
  std::vector<ModelPort> inputs, outputs;
  std::optional<Graph> graph;
  std::unique_ptr<Executable> executable;
  std::unique_ptr<onnx::Session> session;
  CompileOptions options;
  std::string no_reason;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

namespace {

std::vector<ModelPort> ports_of(const std::vector<onnx::ModelPort>& ports) {
  std::vector<ModelPort> result;
  for (const onnx::ModelPort& p : ports) result.push_back({p.name, p.text, p.tensor});
  return result;
}

// Names of symbols instead of their numbers.
std::string type_text(const Graph& graph, const TensorType& type) {
  std::string text = str(type.dtype, " [");
  for (int64_t i = 0; i < type.rank(); ++i) {
    const Dim& d = type.dim(i);
    const std::string* name =
        d.is_static() || d.scale() != 1 || d.offset() != 0 ? nullptr : graph.symbols().find_name(d.symbol_id());
    text += str(i > 0 ? ", " : "", name ? *name : str(d));
  }
  return text + "]";
}

}  // namespace

Model Model::open(const std::string& path, const CompileOptions& options, const ModelSizes& sizes) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (path.ends_with(".onnx")) {
    impl->session = std::make_unique<onnx::Session>(onnx::open_model(path), options, sizes);
    impl->inputs = ports_of(impl->session->inputs());
    impl->outputs = ports_of(impl->session->outputs());
    return Model(std::move(impl));
  }
  impl->graph = load(path);
  Graph& graph = *impl->graph;
  DimBinding binding;
  for (const auto& [name, size] : sizes) {
    const auto& names = graph.symbols().names();
    const auto it = std::find_if(names.begin(), names.end(), [&, &n = name](const auto& e) { return e.second == n; });
    require(it != names.end(), "The graph has no symbol '", name, "'.");
    binding.set(it->first, size);
  }
  if (!binding.empty()) graph = bind(graph, binding);
  for (const Node* leaf : graph.leaves(*find_op("input")))
    impl->inputs.push_back({leaf->name, type_text(graph, leaf->results[0].type), leaf->results[0].type});
  for (const Output& o : graph.outputs())
    impl->outputs.push_back({o.name, type_text(graph, graph.type(o.value)), graph.type(o.value)});
  return Model(std::move(impl));
}

const std::vector<ModelPort>& Model::inputs() const { return impl_->inputs; }
const std::vector<ModelPort>& Model::outputs() const { return impl_->outputs; }

const SymbolTable& Model::symbols() const {
  return impl_->session ? impl_->session->symbols() : impl_->graph->symbols();
}

const Graph* Model::graph() const { return impl_->session ? impl_->session->graph() : &*impl_->graph; }

Executable* Model::executable() {
  if (impl_->session) return impl_->session->executable();
  if (!impl_->executable) impl_->executable = std::make_unique<Executable>(compile(*impl_->graph, impl_->options));
  return impl_->executable.get();
}

const std::string& Model::why_staged() const { return impl_->session ? impl_->session->why_not() : impl_->no_reason; }

namespace {

void flatten(const std::string& name, const onnx::HostValue& value, NamedTensors& out) {
  using Kind = onnx::HostValue::Kind;
  if (value.kind == Kind::kTensor) out[name] = value.tensor;
  if (value.kind == Kind::kStrings)
    fail(ErrorKind::kUnsupported, str("Output '", name, "' holds strings, which run() cannot return."));
  for (size_t i = 0; i < value.items.size(); ++i) flatten(str(name, "/", i), value.items[i], out);
}

}  // namespace

NamedTensors Model::run(const NamedTensors& inputs, const RunOptions& options, std::vector<ModelStage>* stages) {
  if (!impl_->session) {
    if (stages != nullptr) stages->push_back({executable(), inputs});
    return executable()->run(inputs, options);
  }
  std::map<std::string, onnx::HostValue> given;
  for (const auto& [name, tensor] : inputs) {
    const auto& ports = impl_->session->inputs();
    const auto port = std::find_if(ports.begin(), ports.end(), [&, &n = name](const auto& p) { return p.name == n; });
    const bool codes = port != ports.end() && onnx::storage(port->type.elem) == tensor.dtype();
    given[name] = onnx::HostValue(codes ? port->type.elem : onnx::elem_of(tensor.dtype()), tensor);
  }
  const std::vector<onnx::HostValue> results = impl_->session->run(given, {.trace = options.trace, .stages = stages});
  NamedTensors outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = impl_->outputs[i].name;
    const bool wanted = options.outputs.empty() ||
                        std::find(options.outputs.begin(), options.outputs.end(), name) != options.outputs.end();
    if (wanted) flatten(name, results[i], outputs);
  }
  for (const std::string& name : options.outputs)
    require(std::any_of(impl_->outputs.begin(), impl_->outputs.end(), [&](const auto& p) { return p.name == name; }),
            "The model has no output '", name, "'.");
  return outputs;
}

}  // namespace rlx
