#pragma once

#include <cstdint>

namespace rlx::cpu {

// Results from here on are larger than what a cache keeps for the next op: they are written past the caches, which
// saves the read of every line before it is overwritten.
inline constexpr int64_t kStreamBytes = 16 << 20;

// A copy past the caches.
void stream_copy(const void* from, void* to, int64_t bytes);

// Such stores are not ordered by the synchronisation between threads: a thread calls this when it has done its part.
void stream_flush();

}  // namespace rlx::cpu
