// The bar of long commands: on a terminal only, and only after a second.
#include <gtest/gtest.h>

#include "progress_bar.h"
#include "tool.h"

namespace rlx::test {

namespace {

const std::string kLong = str("bench ", RLX_SOURCE_DIR, "/examples/mlp.rlx --dim batch=4096 --seconds 2.5");
const std::string kShort = str("info ", RLX_SOURCE_DIR, "/examples/mlp.rlx");

// What a terminal gets of both streams; script(1) lends one.
std::string on_a_terminal(const std::string& args) {
  const ToolResult r = run_shell(str("script -qec '", RLX_TOOL, " ", args, "' /dev/null </dev/null"));
  EXPECT_EQ(r.code, 0) << r.out;
  return r.out;
}

TEST(Progress, ShowsWhatIsDoneAndHowFar) {
  EXPECT_EQ(cli::bar_text("measuring", 0.5, 3.7), "measuring [===============>              ]  50 %  3 s");
  EXPECT_EQ(cli::bar_text("measuring", 0, 1), "measuring [>                             ]   0 %  1 s");
  EXPECT_EQ(cli::bar_text("measuring", 1, 1), "measuring [==============================] 100 %  1 s");
  EXPECT_EQ(cli::bar_text("loading", -1, 12.2), "loading  12 s");
}

TEST(Progress, ABarOnATerminalThatGoesAwayAgain) {
  const std::string out = on_a_terminal(kLong);
  EXPECT_NE(out.find("measuring [="), out.npos) << out;
  const size_t last = out.rfind("\x1b[K");
  ASSERT_NE(last, out.npos);
  EXPECT_EQ(out.find("measuring [", last), out.npos);  // wiped
  EXPECT_NE(out.find("median", last), out.npos);       // and then the result
}

TEST(Progress, NothingForShortCommandsOrPipes) {
  EXPECT_EQ(on_a_terminal(kShort).find('\x1b'), std::string::npos);
  const ToolResult r = run_tool(kLong);
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.out.find('\x1b'), r.out.npos);
}

}  // namespace

}  // namespace rlx::test
