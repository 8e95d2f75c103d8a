// load(): a model file by its extension. Each format has a folder here; the text form needs none.
#include "core/mapped_file.h"
#include "rlx/graph.h"

namespace rlx {

Graph load(const std::string& path) {
  const auto file = MappedFile::open(path);
  const size_t dot = path.rfind('.');
  const std::string extension = dot == std::string::npos ? "" : path.substr(dot);
  require(extension == ".rlx", "File '", path, "' is not a graph that rlx can load; it loads: .rlx.");
  const std::span<const std::byte> bytes = file->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace rlx
