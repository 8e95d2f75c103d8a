#include "core/mapped_file.h"
#include "rlx/graph.h"

namespace rlx {

Graph load(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace rlx
