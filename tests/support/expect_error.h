// EXPECT_ERROR(expression, kind, text): it throws rlx::Error of that kind whose message or context contains the text.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string_view>

#include "rlx/error.h"

namespace rlx::test {

inline testing::AssertionResult throws_error(const std::function<void()>& f, ErrorKind kind, std::string_view text) {
  try {
    f();
  } catch (const Error& e) {
    const std::string_view what = e.what();
    if (e.kind() != kind)
      return testing::AssertionFailure() << "the error's kind is " << static_cast<int>(e.kind()) << ", not "
                                         << static_cast<int>(kind) << ": " << what;
    if (what.find(text) == std::string_view::npos)
      return testing::AssertionFailure() << "the error does not say \"" << text << "\": " << what;
    return testing::AssertionSuccess();
  } catch (const std::exception& e) {
    return testing::AssertionFailure() << "not an rlx::Error, but: " << e.what();
  }
  return testing::AssertionFailure() << "nothing was thrown, expected \"" << text << "\"";
}

}  // namespace rlx::test

// The first argument is an expression; the failure shows its line.
#define EXPECT_ERROR(expression, kind, text) \
  EXPECT_TRUE(::rlx::test::throws_error([&] { (void)(expression); }, ::rlx::ErrorKind::kind, text))
