// Counter-based random numbers, the same on every platform and backend (spec 10, 6.2 and 6.3).
#pragma once

#include <array>
#include <cstdint>

namespace rlx {

using U32x2 = std::array<uint32_t, 2>;
using U32x4 = std::array<uint32_t, 4>;

// Threefry-2x32-20 and Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
U32x2 threefry2x32(U32x2 counter, U32x2 key);
U32x4 philox4x32(U32x4 counter, U32x2 key);

// A word as a number in [0, 1): its upper 24 bits, so that it is exact in f32.
inline float unit_from_word(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// The general-purpose generator: blocks of Philox4x32-10, the key is the seed, the counter starts at 0.
class Philox {
 public:
  explicit Philox(uint64_t seed) : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  uint32_t next_u32();
  float uniform() { return unit_from_word(next_u32()); }  // [0, 1)
  float uniform(float low, float high) { return low + uniform() * (high - low); }
  float normal();  // Box-Muller, the cosine branch: two words per sample

 private:
  U32x2 key_;
  U32x4 counter_ = {};  // of the next block
  U32x4 block_ = {};
  int used_ = 4;  // words of `block_` that are gone
};

}  // namespace rlx
