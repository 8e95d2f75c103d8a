// How often operator new was called by any thread. Linked into the programs that ask; a sanitizer owns operator new, so
// that nothing is counted there.
#pragma once

#include <cstdint>
#include <optional>

namespace rlx::test {

std::optional<int64_t> allocations();

}  // namespace rlx::test
