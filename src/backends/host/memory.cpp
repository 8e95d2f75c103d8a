#include "backends/host/memory.h"

#include <unistd.h>

#include <limits>

#include "rlx/error.h"

namespace rlx::host {

int64_t memory_bytes() {
  static const int64_t bytes = [] {
    const int64_t pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? pages * size : std::numeric_limits<int64_t>::max();
  }();
  return bytes;
}

void require_memory(int64_t bytes, std::string_view what) {
  if (bytes > memory_bytes())
    fail(ErrorKind::kMemory, str(what, " needs ", bytes, " bytes of memory; the machine has ", memory_bytes(), "."));
}

}  // namespace rlx::host
