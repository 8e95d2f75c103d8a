// Numbers to blocks: as close as a scheme's bits allow, and back to the same codes.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/scheme.h"
#include "support/expect_error.h"
#include "support/random.h"

namespace rlx::test {

namespace {

struct Case {
  Scheme scheme;
  double error;  // root mean square, of normal numbers: what is to be expected of so many bits
};
const Case kCases[] = {{Scheme::kGgufQ8_0, 0.0065}, {Scheme::kGgufQ6K, 0.022}, {Scheme::kGgufQ5_0, 0.045},
                       {Scheme::kGgufQ5_1, 0.045},  {Scheme::kGgufQ5K, 0.04},  {Scheme::kGgufQ4_0, 0.095},
                       {Scheme::kGgufQ4_1, 0.09},   {Scheme::kGgufQ4K, 0.08},  {Scheme::kGgufIq4Nl, 0.085},
                       {Scheme::kGgufIq4Xs, 0.09},  {Scheme::kGgufQ3K, 0.19},  {Scheme::kGgufQ2K, 0.36}};

std::vector<float> back(Scheme scheme, const std::vector<float>& x, std::vector<uint8_t>* bytes = nullptr) {
  const SchemeInfo& row = info(scheme);
  std::vector<uint8_t> packed(x.size() / static_cast<size_t>(row.block_elems) * static_cast<size_t>(row.block_bytes));
  encode_blocks(scheme, x.data(), static_cast<int64_t>(x.size()), packed.data());
  std::vector<float> out(x.size());
  decode_blocks(scheme, packed.data(), static_cast<int64_t>(x.size()), out.data());
  if (bytes) *bytes = packed;
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, all = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    all += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(squares / std::max(all, 1e-30));
}

}  // namespace

TEST(SchemeEncode, IsAsCloseAsTheBitsAllow) {
  Rng rng(4);
  std::vector<float> x;
  const Tensor u = rng.uniform_tensor({2, 8192}, 1e-6, 1);  // Box and Muller
  for (size_t i = 0; i < 8192; ++i)
    x.push_back(std::sqrt(-2 * std::log(u.values<float>()[i])) * std::cos(6.2831853f * u.values<float>()[8192 + i]));
  for (const Case& c : kCases) {
    const double error = distance(x, back(c.scheme, x));
    EXPECT_LT(error, c.error) << str(c.scheme);
    EXPECT_GT(error, c.error / 3) << str(c.scheme) << ": the bound has become too loose";
  }
}

TEST(SchemeEncode, WhatASchemeCanSayComesBack) {
  Rng rng(5);
  const Tensor t = rng.tensor({1024});
  const std::vector<float> x(t.values<float>().begin(), t.values<float>().end());
  for (const Case& c : kCases) {
    const std::vector<float> once = back(c.scheme, x);
    EXPECT_LT(distance(once, back(c.scheme, once)), c.error / 2) << str(c.scheme);
  }
}

TEST(SchemeEncode, EdgesStayFinite) {
  for (const Case& c : kCases)
    for (const float value : {0.0f, 1.0f, -1.0f, 1e-30f, 1000.0f, -60000.0f}) {
      std::vector<float> x(256, value);
      for (const float v : back(c.scheme, x)) {
        EXPECT_TRUE(std::isfinite(v)) << str(c.scheme) << " of " << value;
        EXPECT_NEAR(v, value, std::abs(value) * 0.02f + 1e-6f) << str(c.scheme);
      }
      x[7] = -value * 2;  // and one that sticks out
      for (const float v : back(c.scheme, x)) EXPECT_TRUE(std::isfinite(v)) << str(c.scheme) << " of " << value;
    }
  std::vector<float> x(256);
  uint8_t bytes[300];
  EXPECT_ERROR(encode_blocks(Scheme::kGgufQ8K, x.data(), 256, bytes), kUnsupported, "cannot be encoded as gguf_q8k");
}

}  // namespace rlx::test
