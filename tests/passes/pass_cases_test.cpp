// Runs the text cases of this folder: NAME.rlx holds graphs before and after a pass.
//
//   # a comment that says what the case shows
//   # unclaimed: fused_swiglu, group_norm     ops that the target cannot run
//   # unroll: always                          or never
//   # miss: MultiConsumer                     a near-match the pass must report (several, separated by commas)
//   graph @before { … }
//   ---- name_of_the_pass
//   graph @before { … }                       or the word: unchanged
//   ====                                      between cases
//
// Both graphs also run on the oracle with random inputs and must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/op_cases.h"
#include "support/pass_context.h"
#include "support/run_graph.h"

namespace rlx::test {

namespace {

struct Case {
  int line = 1;
  std::string before, pass, after;
  std::set<std::string, std::less<>> unclaimed;
  std::multiset<std::string> misses;
  passes::Unroll unroll = passes::Unroll::kSmall;
};

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  size_t begin = 0;
  while (begin < text.size() && is_space(text[begin])) ++begin;
  return text.substr(begin);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) out.push_back(trimmed(word));
  return out;
}

void read_directive(Case& c, const std::string& line) {
  const auto value = [&](const std::string& key) -> std::optional<std::string> {
    const std::string prefix = "# " + key + ":";
    if (!line.starts_with(prefix)) return std::nullopt;
    return trimmed(line.substr(prefix.size()));
  };
  if (const auto v = value("unclaimed"))
    for (const std::string& op : words(*v)) c.unclaimed.insert(op);
  if (const auto v = value("miss"))
    for (const std::string& guard : words(*v)) c.misses.insert(guard);
  if (const auto v = value("unroll")) {
    require(*v == "always" || *v == "never", "Unroll (", *v, ") is neither always nor never.");
    c.unroll = *v == "always" ? passes::Unroll::kAlways : passes::Unroll::kNever;
  }
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "File '", path, "' cannot be read.");
  std::vector<Case> cases(1);
  bool in_after = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("====")) {
      cases.push_back({.line = number + 1});
      in_after = false;
    } else if (line.starts_with("---- ")) {
      cases.back().pass = trimmed(line.substr(5));
      in_after = true;
    } else if (in_after) {
      cases.back().after += line + "\n";
    } else {
      read_directive(cases.back(), line);
      cases.back().before += line + "\n";
    }
  }
  return cases;
}

void run(const Case& c) {
  passes::PassContext context = pass_context(c.unclaimed);
  context.options.unroll = c.unroll;
  const passes::Pass* pass = passes::find_pass(c.pass);
  ASSERT_NE(pass, nullptr) << "There is no pass '" << c.pass << "'.";
  const Graph before = parse(c.before, "before");
  verify(before);
  passes::PassRecord record;
  const std::optional<Graph> changed = passes::run_pass(before, *pass, context, record);
  const Graph& after = changed ? *changed : before;
  if (trimmed(c.after) == "unchanged") {
    EXPECT_FALSE(changed.has_value()) << print(after);
  } else {
    EXPECT_TRUE(changed.has_value()) << "the pass changed nothing";
    EXPECT_EQ(print(after), print(parse(c.after, "after")));
  }
  std::multiset<std::string> misses;
  for (const passes::Miss& m : record.misses) misses.insert(m.guard);
  EXPECT_EQ(misses, c.misses);
  passes::PassRecord again;
  EXPECT_FALSE(passes::run_pass(after, *pass, context, again).has_value()) << "running it twice is not running it once";

  const Outcome expected = run_on_random_data(before, 1), actual = run_on_random_data(after, 1);
  EXPECT_EQ(expected.fails, actual.fails);
  ASSERT_EQ(expected.values.size(), actual.values.size());
  for (size_t i = 0; i < expected.values.size(); ++i)
    EXPECT_TRUE(pass->numerics == passes::Numerics::kExact ? same_bits(actual.values[i], expected.values[i])
                                                           : near(actual.values[i], expected.values[i], kAccumulation));
}

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(RLX_PASS_CASES))
    if (entry.path().extension() == ".rlx") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

class PassCases : public testing::TestWithParam<std::string> {};

TEST_P(PassCases, RewriteAsWritten) {
  for (const Case& c : read_cases(str(RLX_PASS_CASES, "/", GetParam(), ".rlx"))) {
    SCOPED_TRACE(str(GetParam(), ".rlx:", c.line));
    run(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PassCases, testing::ValuesIn(case_files()),
                         [](const auto& file) { return file.param; });

}  // namespace rlx::test
