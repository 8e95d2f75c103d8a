// Opening a model: bytes to protobuf structs, and the faults that show without building anything.
#include <filesystem>
#include <set>

#include "import/onnx/node.h"
#include "import/onnx/session.h"
#include "rlx/log.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kNewestOpset = 27;  // of ai.onnx: rows beyond it do not exist yet, older rows may be wrong for it

void check_nodes(const ModelSource& model, const std::vector<NodeProto>& nodes, const Opsets& opsets) {
  for (const NodeProto& node : nodes) {
    const auto version = opsets.find(node.domain);
    const int64_t opset = version == opsets.end() ? 1 : version->second;
    if (!model.functions.contains(str(node.domain, ":", node.op_type, ":", node.overload)) &&
        !find_builder(node.domain, node.op_type, opset))
      fail(ErrorKind::kUnsupported, str("Op '", node.domain.empty() ? "" : str(node.domain, "."), node.op_type,
                                        "' of opset ", opset, " (node '", node.name, "') is not supported."));
    for (const AttributeProto& a : node.attributes)
      for (const auto& g : a.graphs) check_nodes(model, g->nodes, opsets);
  }
}

}  // namespace

std::shared_ptr<const ModelSource> parse_source(std::string_view bytes, std::shared_ptr<const void> owner,
                                                std::string folder, std::string where) {
  auto model = std::make_shared<ModelSource>(
      ModelSource{parse_model(bytes), TensorSource(std::move(owner), std::move(folder)), {}, std::move(where)});
  const ModelProto& proto = model->proto;
  require(proto.graph.has_value(), "The file is not an ONNX model: it has no graph.");
  require(!proto.graph->outputs.empty(), "The model has no outputs.");
  Opsets opsets;
  for (const OpsetId& id : proto.opsets) opsets[id.domain] = id.version;
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
  for (const FunctionProto& f : proto.functions) model->functions[str(f.domain, ":", f.name, ":", f.overload)] = &f;
  check_nodes(*model, proto.graph->nodes, opsets);
  for (const FunctionProto& f : proto.functions) {
    Opsets own = opsets;
    for (const OpsetId& id : f.opsets) own[id.domain] = id.version;
    check_nodes(*model, f.nodes, own);
  }
  return model;
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
