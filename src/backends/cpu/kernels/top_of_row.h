// The k largest keys of a row in order, without sorting the row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "backends/cpu/simd/select.h"

namespace rlx::cpu {

// A key and its index as one number: larger keys first, of equal ones the smaller index.
inline uint64_t ranked(int32_t key, int64_t index) {
  const auto ordered = static_cast<uint64_t>(static_cast<uint32_t>(key) ^ 0x8000'0000u);
  return ordered << 32 | (0xFFFF'FFFFu - static_cast<uint64_t>(index));
}
inline int64_t index_of(uint64_t rank) { return static_cast<int64_t>(0xFFFF'FFFFu - (rank & 0xFFFF'FFFFu)); }
inline int32_t key_of(uint64_t rank) { return static_cast<int32_t>(static_cast<uint32_t>(rank >> 32) ^ 0x8000'0000u); }

// Candidates that are collected before the best k of them are kept.
inline int64_t candidates_for(int64_t n, int64_t k) { return std::min(n, 4 * k + 1024); }

// top[0..k) in order; `top` holds candidates_for(n, k) numbers, and so does `found`.
inline void top_of_row(const int32_t* keys, int64_t n, int64_t k, uint64_t* top, int32_t* found) {
  const int64_t capacity = candidates_for(n, k);
  int64_t count = 0, next = capacity;
  for (; count < capacity; ++count) top[count] = ranked(keys[count], count);
  while (true) {
    if (k < count) std::nth_element(top, top + k - 1, top + count, std::greater<>());
    count = std::min(count, k);
    if (next >= n) break;
    // An equal key that comes later loses.
    const int64_t more = find_above(keys, next, n, key_of(top[k - 1]), found, capacity - count, next);
    for (int64_t i = 0; i < more; ++i) top[count++] = ranked(keys[found[i]], found[i]);
  }
  std::sort(top, top + k, std::greater<>());
}

}  // namespace rlx::cpu
