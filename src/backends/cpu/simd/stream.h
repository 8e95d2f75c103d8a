#pragma once

#include <cstdint>

namespace rlx::cpu {

// Results from here on are larger than what a cache keeps for the next op: they are written past the caches, which
// saves the read of every line before it is overwritten.
inline constexpr int64_t kStreamBytes = 16 << 20;

// A copy past the caches, done when it returns.
void stream_copy(const float* from, float* to, int64_t n);

}  // namespace rlx::cpu
