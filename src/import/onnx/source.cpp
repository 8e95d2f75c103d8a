// Opening a model: bytes to protobuf structs, and the faults that show without building anything.
#include <filesystem>
#include <set>

#include "import/onnx/node.h"
#include "import/onnx/session.h"
#include "rlx/log.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kNewestOpset = 27;  // of ai.onnx: rows beyond it do not exist yet, older rows may be wrong for it

constexpr int kMaxCalls = 100;            // of functions that call functions
constexpr int64_t kMaxNodes = 1'000'000;  // with functions written out: few of them can make any number

// Checks what can be reached from the main graph, and counts nodes as if every function were written out where it is
// called.
class Checker {
 public:
  Checker(const ModelSource& model, const Opsets& opsets) : model_(model), opsets_(opsets) {}

  void check() { check_graph(*model_.proto.graph, opsets_); }

 private:
  int64_t check_graph(const GraphProto& graph, const Opsets& opsets) {
    std::set<std::string_view> names;
    for (const TensorProto& t : graph.initializers)
      require(names.insert(t.name).second, "Initializer '", t.name, "' is given twice.");
    return check_nodes(graph.nodes, opsets);
  }

  int64_t check_nodes(const std::vector<NodeProto>& nodes, const Opsets& opsets) {
    int64_t count = 0;
    for (const NodeProto& node : nodes) {
      const auto version = opsets.find(node.domain);
      const int64_t opset = version == opsets.end() ? 1 : version->second;
      const auto function = model_.functions.find(str(node.domain, ":", node.op_type, ":", node.overload));
      ++count;
      if (!find_builder(node.domain, node.op_type, opset)) {  // as the importer chooses
        if (function == model_.functions.end())
          fail(ErrorKind::kUnsupported, str("Op '", node.domain.empty() ? "" : str(node.domain, "."), node.op_type,
                                            "' of opset ", opset, " (node '", node.name, "') is not supported."));
        count += check_function(*function->second);
      }
      for (const AttributeProto& a : node.attributes)
        for (const auto& g : a.graphs) count += check_graph(*g, opsets);
      require(count <= kMaxNodes, "The model has more than ", kMaxNodes, " nodes when its functions are written out.");
    }
    return count;
  }

  int64_t check_function(const FunctionProto& f) {
    constexpr int64_t kOpen = -1;
    const auto [it, is_new] = counts_.emplace(&f, kOpen);
    if (!is_new) {
      require(it->second != kOpen, "Function '", f.name, "' calls itself.");
      return it->second;
    }
    require(++calls_ < kMaxCalls, "Functions call each other more than ", kMaxCalls, " deep.");
    Opsets own = opsets_;
    for (const OpsetId& id : f.opsets) own[id.domain] = id.version;
    const int64_t count = check_nodes(f.nodes, own);
    --calls_;
    return counts_[&f] = count;
  }

  const ModelSource& model_;
  const Opsets& opsets_;
  std::map<const FunctionProto*, int64_t> counts_;  // -1: being counted
  int calls_ = 0;
};

}  // namespace

static std::shared_ptr<const ModelSource> parse_bytes(std::string_view bytes, std::shared_ptr<const void> owner,
                                                      std::string folder, std::string where) {
  auto model = std::make_shared<ModelSource>(
      ModelSource{parse_model(bytes), TensorSource(std::move(owner), std::move(folder)), {}, std::move(where)});
  const ModelProto& proto = model->proto;
  require(proto.graph.has_value(), "The file is not an ONNX model: it has no graph.");
  require(!proto.graph->outputs.empty(), "The model has no outputs.");
  Opsets opsets;
  for (const OpsetId& id : proto.opsets) opsets[id.domain] = id.version;
  opsets.emplace("", 1);  // the first versions of ONNX had but one
  if (opsets[""] > kNewestOpset)
    log(LogLevel::kWarning, str("The model uses opset ", opsets[""], ", rlx knows opsets up to ", kNewestOpset,
                                "; ops that changed since are read as the older ones."));
  std::set<std::string_view> names;
  for (const ValueInfo& v : proto.graph->inputs) {
    require(!v.name.empty(), "An input has no name.");
    require(names.insert(v.name).second, "Input '", v.name, "' is declared twice.");
  }
  std::set<std::string_view> outputs;
  for (const ValueInfo& v : proto.graph->outputs)
    require(outputs.insert(v.name).second, "Output '", v.name, "' is declared twice.");
  for (const FunctionProto& f : proto.functions)
    require(model->functions.emplace(str(f.domain, ":", f.name, ":", f.overload), &f).second, "Function '", f.name,
            "' is defined twice.");
  Checker(*model, opsets).check();
  return model;
}

std::shared_ptr<const ModelSource> parse_source(std::string_view bytes, std::shared_ptr<const void> owner,
                                                std::string folder, std::string where) {
  return guard_memory([&] { return parse_bytes(bytes, std::move(owner), std::move(folder), std::move(where)); });
}

std::shared_ptr<const ModelSource> open_model(const std::string& path) {
  try {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    const std::span<const std::byte> bytes = file->bytes();
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    return parse_source({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, folder.string(), path);
  } catch (Error& e) {
    e.add_context(str("loading ", path));
    throw;
  }
}

}  // namespace rlx::onnx
