// load(): a model file by its extension. Each format has a folder here; the text form needs none.
#include "core/mapped_file.h"
#include "import/onnx/session.h"
#include "rlx/graph.h"

namespace rlx {

Graph load(const std::string& path) {
  const size_t dot = path.rfind('.');
  const std::string extension = dot == std::string::npos ? "" : path.substr(dot);
  if (extension == ".onnx") {
    const onnx::Session session(onnx::open_model(path), {}, {});
    if (!session.graph())
      fail(ErrorKind::kUnsupported, str("File '", path,
                                        "' is a model whose graph depends on the data of a run; rlx::Model runs it. "
                                        "The reason: ",
                                        session.why_not()));
    return *session.graph();
  }
  const auto file = MappedFile::open(path);
  require(extension == ".rlx", "File '", path, "' is not a model that rlx can load; it loads: .onnx, .rlx.");
  const std::span<const std::byte> bytes = file->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace rlx
