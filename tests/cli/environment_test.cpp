// The environment's switches fill the compile options of a run; a bad value is one sentence.
#include <gtest/gtest.h>

#include "rlx/error.h"
#include "tool.h"

namespace rlx::test {

class Environment : public testing::Test {
 protected:
  // The tool with a variable set.
  ToolResult run(const std::string& variable, const std::string& args) const {
    return run_shell(str(variable, " ", RLX_TOOL, " ", args));
  }
  // On the reference, whose graph is not fused: there is something to share and to do in place.
  nlohmann::json plan(const std::string& variable) const {
    return run(variable,
               str("info ", RLX_SOURCE_DIR, "/examples/mlp.rlx --dim batch=64 --plan --json --device reference"))
        .json()
        .at("plan");
  }
};

TEST_F(Environment, SwitchesReachThePlan) {
  const auto usual = plan("RLX_NO_REUSE=0"), apart = plan("RLX_NO_REUSE=1"), copied = plan("RLX_NO_IN_PLACE=1");
  EXPECT_LT(usual.at("arena_bytes"), usual.at("unshared_bytes"));
  EXPECT_EQ(apart.at("arena_bytes"), apart.at("unshared_bytes"));
  EXPECT_GT(usual.at("in_place_results"), 0);
  EXPECT_EQ(copied.at("in_place_results"), 0);
  for (const std::string variable : {"RLX_KERNEL_DISPATCH=common", "RLX_WGPU_NAN_TRACE=1", "RLX_POISON=1",
                                     "RLX_VERIFY_PLAN=on", "RLX_SCHEDULE=source", "RLX_SCHEDULE=greedy"})
    EXPECT_TRUE(plan(variable).contains("arena_bytes")) << variable;
}

TEST_F(Environment, BadValuesAreOneSentence) {
  const std::string toy =
      str("run ", RLX_SOURCE_DIR, "/examples/mlp.rlx --random-inputs --random-params --dim batch=1");
  const auto expect = [&](const std::string& variable, const std::string& message) {
    const ToolResult r = run(variable, toy);
    EXPECT_EQ(r.code, 1) << variable;
    EXPECT_EQ(r.err, "rlx: " + message + "\n") << variable;
    EXPECT_EQ(r.out, "") << variable;
  };
  expect("RLX_NO_REUSE=maybe", "Environment variable RLX_NO_REUSE is 'maybe', not 0 or 1.");
  expect("RLX_SCHEDULE=sideways", "Environment variable RLX_SCHEDULE is 'sideways', not best, greedy or source.");
  expect("RLX_KERNEL_DISPATCH=fast", "Environment variable RLX_KERNEL_DISPATCH is 'fast', not native or common.");
  expect("RLX_WGPU_DUMP_FLAT=first", "Environment variable RLX_WGPU_DUMP_FLAT is 'first', not a number.");
  expect("RLX_DEVICE=abacus", "There is no device 'abacus'; there are: auto, webgpu, cpu, reference.");
}

}  // namespace rlx::test
