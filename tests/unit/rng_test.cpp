#include "core/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rlx {

// The vectors of spec 10, 6.2, and those of Random123's kat_vectors.
TEST(Threefry, GivesThePublishedVectors) {
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (U32x2{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}), (U32x2{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}), (U32x2{0xc4923a9c, 0x483df7a0}));
}

TEST(Threefry, GivesTheKeysAndWordsOfSampling) {
  struct Row {
    uint32_t seed;
    U32x2 key;
    uint32_t w00, w01, w10;
  };
  for (const Row& row : {Row{0, {0x6b200159, 0x99ba4efe}, 0xf84e8312, 0x50afc224, 0x62d8fba1},
                         Row{42, {0xde79f4b9, 0x4f6cc618}, 0x9c1bc7e0, 0x6e36fa68, 0x4a8d171c}}) {
    const U32x2 key = threefry2x32({0, 0}, {row.seed, 0});
    EXPECT_EQ(key, row.key);
    EXPECT_EQ(threefry2x32({0, 0}, key)[0], row.w00);
    EXPECT_EQ(threefry2x32({0, 1}, key)[0], row.w01);
    EXPECT_EQ(threefry2x32({1, 0}, key)[0], row.w10);
  }
  const U32x2 key = threefry2x32({0, 0}, {42, 0});
  EXPECT_EQ(unit_from_word(threefry2x32({0, 0}, key)[0]), 0.6097988486289978f);
  EXPECT_EQ(unit_from_word(threefry2x32({0, 1}, key)[0]), 0.43052637577056885f);
  EXPECT_EQ(unit_from_word(threefry2x32({0, 2}, key)[0]), 0.6445550322532654f);
}

// Philox written again with its first multiplier open: the reference implementation has a wrong one.
static U32x4 philox_with(uint32_t multiplier, U32x4 c, U32x2 k) {
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(multiplier) * c[0], p1 = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
    const uint32_t k0 = k[0] + round * 0x9E3779B9u, k1 = k[1] + round * 0xBB67AE85u;
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1 & 0xffffffff),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0 & 0xffffffff)};
  }
  return c;
}

TEST(Philox, IsTheStandardOneAndNotTheReferences) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (U32x4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {42, 0}), (U32x4{0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (U32x4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (U32x4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox_with(0xD2561A75, {0, 0, 0, 0}, {0, 0}), (U32x4{0xab45d93f, 0x7d18eb7f, 0x4ba0ff59, 0x6af5bcc1}));
  EXPECT_EQ(philox_with(0xD2511F53, {7, 8, 9, 10}, {11, 12}), philox4x32({7, 8, 9, 10}, {11, 12}));
}

TEST(Philox, CountsBlocksOfFourWords) {
  constexpr uint64_t kSeed = 0x123456789abcdef0;
  Philox rng(kSeed);
  for (uint32_t block = 0; block < 3; ++block)
    for (const uint32_t word : philox4x32({block, 0, 0, 0}, {0x9abcdef0, 0x12345678})) EXPECT_EQ(rng.next_u32(), word);
}

TEST(Philox, UniformAndNormalFollowTheirFormulas) {
  Philox words(42), uniform(42), scaled(42), normal(42);
  for (int i = 0; i < 16; ++i) {
    const uint32_t a = words.next_u32(), b = words.next_u32();
    const double u1 = (a >> 8) / 16777216.0, u2 = (b >> 8) / 16777216.0;
    EXPECT_EQ(uniform.uniform(), static_cast<float>(u1));
    EXPECT_EQ(uniform.uniform(), static_cast<float>(u2));
    EXPECT_FLOAT_EQ(scaled.uniform(-2, 6), static_cast<float>(-2 + 8 * u1));
    EXPECT_FLOAT_EQ(scaled.uniform(-2, 6), static_cast<float>(-2 + 8 * u2));
    EXPECT_NEAR(normal.normal(), std::sqrt(-2 * std::log(u1)) * std::cos(2 * M_PI * u2), 1e-6);
  }
}

TEST(Philox, NormalHasTheRightMoments) {
  Philox rng(1);
  constexpr int kCount = 20000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.03);
  EXPECT_NEAR(squares / kCount, 1, 0.04);
  EXPECT_NEAR(fourth / kCount, 3, 0.3);
}

}  // namespace rlx
