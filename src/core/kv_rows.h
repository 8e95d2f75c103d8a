// Rows of a quantised KV cache in 32-bit words: blocks of 32 elements as in GGUF's q8_0, but all quants first (four to
// a word), then the blocks' f16 scales (two to a word), so that every load is aligned.
#pragma once

#include <cstdint>

namespace rlx {

inline constexpr int64_t kQ8Block = 32;

constexpr int64_t q8_row_words(int64_t width) { return width / 4 + (width / kQ8Block + 1) / 2; }
// `width`: a multiple of kQ8Block.
void encode_q8_row(const float* from, int64_t width, uint32_t* to);
void decode_q8_row(const uint32_t* from, int64_t width, float* to);

}  // namespace rlx
