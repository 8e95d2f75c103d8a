#include "rlx/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rlx/shape.h"
#include "support/expect_error.h"

namespace rlx {
namespace {

TEST(Error, WhatIsTheMessageThenTheContextInnermostFirst) {
  Error e(ErrorKind::kInvalid, "Axis (3) is out of range for rank (2).");
  EXPECT_STREQ(e.what(), "Axis (3) is out of range for rank (2).");
  e.add_context("importing node 'probs' (Softmax)");
  e.add_context("loading model.onnx");
  EXPECT_STREQ(e.what(),
               "Axis (3) is out of range for rank (2).\n"
               "  - while importing node 'probs' (Softmax)\n"
               "  - while loading model.onnx");
  EXPECT_EQ(e.message(), "Axis (3) is out of range for rank (2).");
  EXPECT_EQ(e.context().size(), 2u);
  EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
}

TEST(Error, ContextSurvivesRethrowing) {
  try {
    try {
      fail(ErrorKind::kRuntime, "It broke.");
    } catch (Error& e) {
      e.add_context("testing");
      throw;
    }
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "It broke.\n  - while testing");
  }
}

TEST(Error, RequireThrowsOnlyWhenItsConditionFails) {
  EXPECT_NO_THROW(require(true, "never"));
  EXPECT_ERROR(require(false, "Size (", 3, ") is odd."), kInvalid, "Size (3) is odd.");
}

TEST(Error, AssertionsAreInternalErrors) {
  EXPECT_ERROR([] { RLX_ASSERT(1 + 1 == 3); }(), kInternal, "1 + 1 == 3 does not hold");
  EXPECT_NO_THROW([] { RLX_ASSERT(1 + 1 == 2); }());
}

TEST(Str, WritesEachKindOfValue) {
  EXPECT_EQ(str(), "");
  EXPECT_EQ(str("a", std::string("b"), std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(str(true, " ", false), "true false");
  EXPECT_EQ(str(int8_t{-5}, " ", uint8_t{200}, " ", std::numeric_limits<int64_t>::min()),
            "-5 200 -9223372036854775808");
  EXPECT_EQ(str(std::vector<int64_t>{1, 2}, std::vector<int>{}), "[1, 2][]");
  EXPECT_EQ(str(DType::BF16, " ", Dim(3)), "bf16 3");
}

TEST(Str, FloatsAreTheShortestTextThatReadsBack) {
  EXPECT_EQ(str(0.1), "0.1");
  EXPECT_EQ(str(0.1f), "0.1");
  EXPECT_EQ(str(1e100), "1e+100");
  EXPECT_EQ(str(-0.0), "-0");
  EXPECT_EQ(str(std::numeric_limits<double>::infinity(), " ", -std::numeric_limits<float>::infinity()), "inf -inf");
  EXPECT_EQ(str(std::nan("")), "nan");
  EXPECT_EQ(str(std::nextafter(1.0, 2.0)), "1.0000000000000002");
}

}  // namespace
}  // namespace rlx
