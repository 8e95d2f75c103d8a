// What the machine can hold: a graph that asks for more is refused before anything is allocated.
#pragma once

#include <cstdint>
#include <string_view>

namespace rlx::host {

// Bytes of physical memory.
int64_t memory_bytes();
// Error(kMemory) when `what` needs more than that. The system would promise the bytes and end the process when they are
// touched.
void require_memory(int64_t bytes, std::string_view what);

}  // namespace rlx::host
