#include "core/rng.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace rlx {

U32x2 threefry2x32(U32x2 counter, U32x2 key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  uint32_t x0 = counter[0] + ks[0], x1 = counter[1] + ks[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (const int rotation : kRotations[(group + 1) % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += ks[group % 3];
    x1 += ks[(group + 1) % 3] + group;
  }
  return {x0, x1};
}

U32x4 philox4x32(U32x4 c, U32x2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

uint32_t Philox::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    for (uint32_t& word : counter_)
      if (++word != 0) break;  // carry into the next word
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

float Philox::normal() {
  const double u1 = std::max(uniform(), std::numeric_limits<float>::min());  // the logarithm of 0 is not finite
  const double u2 = uniform();
  return static_cast<float>(std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2));
}

}  // namespace rlx
