// rlx trace: a file that trace viewers open, with every pass and every step of every run.
#include <gtest/gtest.h>

#include <algorithm>

#include "tool.h"

namespace rlx::test {

namespace {

using nlohmann::json;

TEST(Trace, HasASlicePerPassAndPerStepOfEachRun) {
  const TempFolder folder;
  const std::string mlp = RLX_SOURCE_DIR "/examples/mlp.rlx";
  const ToolResult r = run_tool(str("trace ", mlp, " ", folder.path("t.json"), " --dim batch=4 --device cpu --runs 4"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json events = json::parse(read_whole_file(folder.path("t.json")))["traceEvents"];
  const json info = run_tool(str("info ", mlp, " --schedule --dim batch=4 --device cpu --json")).json();

  std::vector<json> passes, runs, prepared, steps;
  for (const json& e : events) {
    if (e["ph"] == "M") continue;
    EXPECT_EQ(e["ph"], "X") << e;
    EXPECT_GE(e["ts"].get<double>(), 0) << e;
    EXPECT_GE(e["dur"].get<double>(), 0) << e;
    EXPECT_TRUE(e.contains("pid") && e.contains("tid")) << e;
    if (e["cat"] == "pass") passes.push_back(e);
    if (e["cat"] == "run") runs.push_back(e);
    if (e["cat"] == "prepare") prepared.push_back(e);
    if (e["cat"] == "step") steps.push_back(e);
  }
  EXPECT_EQ(passes.size(), info["passes"]["passes"].size());
  ASSERT_EQ(runs.size(), 4u);
  const json plan = info["plan"]["steps"];
  ASSERT_EQ(steps.size(), 4 * plan.size());
  EXPECT_EQ(prepared.size(), info["plan"]["static_steps"].size());  // in the first run alone
  for (size_t i = 0; i < steps.size(); ++i) {
    const json &step = steps[i], &args = step["args"], &run = runs[i / plan.size()];
    EXPECT_EQ(args["node"], plan[i % plan.size()]["node"]);
    EXPECT_EQ(step["name"], plan[i % plan.size()]["op"]);
    EXPECT_EQ(args["kernel"], plan[i % plan.size()]["kernel"]);
    EXPECT_GT(args["bytes"], 0);
    EXPECT_GT(args["flops"], 0);
    EXPECT_GE(args["threads"], 1);
    const auto begin = [](const json& e) { return e["ts"].get<double>(); };
    const auto end = [](const json& e) { return e["ts"].get<double>() + e["dur"].get<double>(); };
    EXPECT_GE(begin(step), begin(run) - 1e-3);  // a child of its run
    EXPECT_LE(end(step), end(run) + 1e-3);
    const double before = i % plan.size() == 0 ? 0 : end(steps[i - 1]);
    EXPECT_GE(begin(step), before - 1e-3);  // one after the other
  }
}

// By the GPU's clock: steps in their order, none outside its run.
TEST(Trace, OnAGpuHasStepsWithTheirNamesBytesAndFlops) {
  if (run_tool("devices --json").json()["devices"][0]["available"] != true) GTEST_SKIP() << "no adapter";
  const TempFolder folder;
  const std::string mlp = RLX_SOURCE_DIR "/examples/mlp.rlx";
  const ToolResult r =
      run_tool(str("trace ", mlp, " ", folder.path("t.json"), " --dim batch=4 --device webgpu --runs 3"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json events = json::parse(read_whole_file(folder.path("t.json")))["traceEvents"];
  std::vector<json> runs, steps;
  for (const json& e : events) {
    if (e["ph"] != "X") continue;
    if (e["cat"] == "run") runs.push_back(e);
    if (e["cat"] == "step") steps.push_back(e);
  }
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(steps.size(), 12u);
  const char* const names[] = {"layer_norm", "matmul", "matmul", "softmax"};
  for (size_t i = 0; i < steps.size(); ++i) {
    const json &step = steps[i], &run = runs[i / 4];
    EXPECT_EQ(step["name"], names[i % 4]);
    EXPECT_TRUE(step["args"]["kernel"].get<std::string>().starts_with("webgpu/")) << step;
    EXPECT_GT(step["args"]["bytes"], 0) << step;
    EXPECT_GT(step["args"]["flops"], 0) << step;
    const auto begin = [](const json& e) { return e["ts"].get<double>(); };
    const auto end = [](const json& e) { return e["ts"].get<double>() + e["dur"].get<double>(); };
    EXPECT_GE(begin(step), begin(run) - 1e-3) << step;
    EXPECT_LE(end(step), end(run) + 1e-3) << step;
    if (i % 4 != 0) {
      EXPECT_GE(begin(step), end(steps[i - 1]) - 1e-3) << step;
    }
  }
}

TEST(Trace, AFileThatCannotBeWrittenIsASentence) {
  const ToolResult r = run_tool(str("trace ", RLX_SOURCE_DIR, "/examples/mlp.rlx /no/such/t.json --dim batch=1"));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("/no/such/t.json"), r.err.npos) << r.err;
}

}  // namespace

}  // namespace rlx::test
