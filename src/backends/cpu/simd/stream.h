#pragma once

#include <cstdint>

namespace rlx::cpu {

// Results of this many bytes are written past the caches, which saves the read of every line before it is overwritten:
// little of them would be left there for the next op. Three element-wise ops in a row on a machine with 32 MiB of
// shared cache: 30 % slower at 2 MiB, even at 4, 20 % faster at 8 and 12.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

// A copy past the caches.
void stream_copy(const void* from, void* to, int64_t bytes);

// Such stores are not ordered by the synchronisation between threads: a thread calls this when it has done its part.
void stream_flush();

}  // namespace rlx::cpu
