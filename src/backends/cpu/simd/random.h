#pragma once

#include <cstdint>

#include "core/rng.h"

namespace rlx::cpu {

// words[i] = threefry2x32({row, first + i}, key)[0], vectorised.
void threefry_words(uint32_t row, uint32_t first, U32x2 key, uint32_t* words, int64_t n);

}  // namespace rlx::cpu
