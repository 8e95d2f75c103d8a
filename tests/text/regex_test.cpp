#include "text/regex.h"

#include <gtest/gtest.h>

#include "rlx/error.h"

namespace rlx::text {
namespace {

std::vector<std::string> all(std::string_view pattern, std::string_view text) {
  std::vector<std::string> out;
  for (const Match& m : Regex(pattern).matches(text)) out.emplace_back(text.substr(m.start, m.end - m.start));
  return out;
}

TEST(Regex, ReadsOnigurumasSyntax) {
  EXPECT_EQ(all(R"(\s+)", "a\u0085b\u180ec\u3000"), (std::vector<std::string>{"\u0085", "\u3000"}));
  EXPECT_EQ(all(R"(\w+)", "a\u0301b_\u00b2 \u2460"), (std::vector<std::string>{"a\u0301b_\u00b2"}));
  EXPECT_EQ(all(R"( ?[^(\s|[.,])]+)", "a b, (c"), (std::vector<std::string>{"a", " b", "c"}));
  EXPECT_EQ(all(R"(\u0041|[\u0042])", "ABC"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(all(R"(x$)", "x\nx"), (std::vector<std::string>{"x", "x"}));  // $ matches at every line
  EXPECT_EQ(Regex(R"((?=(\d{3})+(?!\d)))").matches("1234567").size(), 2u);
}

TEST(Regex, BadPatternsAreErrors) {
  for (const char* pattern :
       {"(", "[a", "*", "[a&&b]", "[a[^b]]", "\\p{Nothing}", "[[:alpha]", "\xFF", "(?<a>x)(?<a>y)", "\\C"})
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
}

TEST(Regex, EndsWhereASearchWouldNot) {
  const std::string text = std::string(40, 'a').append("b");
  EXPECT_TRUE(Regex("(a|a)*$").matches(std::string(5000, 'a').append("!")).size() <= 5001);
  EXPECT_TRUE(all("^(a+)+$", text).empty());
}

}  // namespace
}  // namespace rlx::text
