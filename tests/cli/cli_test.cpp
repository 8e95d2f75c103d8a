// What each subcommand does when all is well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/npy.h"
#include "rlx/graph.h"
#include "tool.h"

namespace rlx::test {

namespace {

using nlohmann::json;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

class Cli : public testing::Test {
 protected:
  const TempFolder folder;
  const std::string toy = folder.write("toy.rlx", kToyGraph);
};

TEST_F(Cli, VersionAndHelpSucceed) {
  const ToolResult version = run_tool("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("rlx 0.")) << version.out;
  for (const std::string command : {"", "run ", "info ", "check ", "ops ", "devices ", "bench ", "trace ", "embed ",
                                    "generate ", "chat ", "tokenize ", "perplexity ", "quantize ", "test-onnx "}) {
    const ToolResult help = run_tool(command + "--help");
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_TRUE(contains(help.out, "Usage: rlx " + command)) << help.out;
    EXPECT_TRUE(contains(help.out, "\n  rlx " + command.substr(0, command.find(' ')))) << help.out;  // an example
    // What CLI11 writes where an option does not say what it takes.
    for (const std::string word : {"REQUIRED", "TEXT:", "INT:", "Needs:", "Excludes:"})
      EXPECT_FALSE(contains(help.out, word)) << word << "\n" << help.out;
  }
  EXPECT_TRUE(contains(run_tool("perplexity --help").out, "by default 512"));
  EXPECT_TRUE(contains(run_tool("bench --help").out, "or a language model"));
  // A device that is not there is said once, not of each case.
  const ToolResult nowhere = run_tool(str("test-onnx ", RLX_SOURCE_DIR, "/examples --device abacus"));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_TRUE(nowhere.err.starts_with("rlx: There is no device 'abacus'")) << nowhere.err << nowhere.out;
}

TEST_F(Cli, RunComputesWhatTheFilesSay) {
  write_npy(folder.path("x.npy"), Tensor::f32({2, 4}, {1, 2, 3, 4, 0, 0, 0, 0}));
  write_npz(folder.path("w.npz"), {{"w", Tensor::f32({4}, {4, 3, 2, 1})}});
  write_npz(folder.path("n.npz"), {{"a", Tensor::i64({}, {1})}, {"b", Tensor::i64({}, {1234567890123456789})}});
  const ToolResult r =
      run_tool(str("run ", toy, " --input x=", folder.path("x.npy"), " --input n=", folder.path("n.npz"),
                   ":b --params ", folder.path("w.npz"), " --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json outputs = r.json()["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0]["name"], "c");
  EXPECT_EQ(outputs[0]["shape"], json({2, 4}));
  EXPECT_EQ(outputs[0]["dtype"], "f32");
  // Row 0 of x + w is all 5, so its softmax is 1/4.
  EXPECT_EQ(outputs[0]["first"], json({0.25, 0.5, 0.75, 1.0, 0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(outputs[0]["min"], 0);
  EXPECT_EQ(outputs[0]["max"], 1);
  EXPECT_EQ(outputs[0]["mean"], 2.5 / 8);
  EXPECT_EQ(outputs[0]["nan"], 0);
  EXPECT_EQ(outputs[2]["first"], json({1234567890123456789}));
}

// Whatever its sign, which processors and GPUs choose.
TEST_F(Cli, NaNHasNoSign) {
  folder.write("nan.rlx", "graph @g {\n  %x = input() : [2] f32\n  %y = neg(%x) : [2] f32\n  return %x, %y\n}\n");
  const ToolResult r = run_tool(str("run ", folder.path("nan.rlx"), " --input x=nan"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "[nan, nan]")) << r.out;
  EXPECT_FALSE(contains(r.out, "-nan")) << r.out;
}

TEST_F(Cli, RunShowsValuesAndCountsNaN) {
  write_npy(folder.path("x.npy"), Tensor::f32({1, 4}, {NAN, 1, 2, 3}));
  const ToolResult r = run_tool(str("run ", toy, " --input x=", folder.path("x.npy"),
                                    " --random-inputs --random-params --output probs --output n"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("probs: [1, 4] f32\n  [nan, nan, nan, nan]\n  NaN 4 of 4\nn: [] i64\n")) << r.out;
}

TEST_F(Cli, RandomValuesFollowTheSeedAndTheName) {
  const auto first = [&](const std::string& args) {
    const ToolResult r = run_tool(str("run ", toy, " --dim batch=2 --json ", args));
    EXPECT_EQ(r.code, 0) << r.err;
    return r.json()["outputs"][0]["first"];
  };
  const json seed0 = first("--random-inputs --random-params");
  EXPECT_EQ(seed0, first("--random-inputs=0 --random-params 0"));
  EXPECT_NE(seed0, first("--random-inputs 1 --random-params"));
  EXPECT_NE(seed0, first("--random-inputs --random-params 1"));
  // The same numbers whichever way they are asked for.
  EXPECT_EQ(first("--input x=random:2x4:5 --random-inputs --random-params"),
            first("--random-inputs 5 --random-params"));
  EXPECT_EQ(seed0, first("--random-inputs --param w=random:4"));
  // A seed that is no number is the graph's file.
  EXPECT_EQ(run_tool(str("run --random-params --random-inputs ", toy, " --dim batch=2")).code, 0);
}

TEST_F(Cli, SaveWritesOneFilePerOutput) {
  folder.write("odd.rlx", R"(graph @g {
  %x = input() : [3] bf16
  %y = add(%x, %x) : [3] bf16
  return "a/b c"=%y, "x-1.2"=%x
})");
  write_npy(folder.path("x.npy"), Tensor::f32({3}, {1, 2.5, -3}));
  const ToolResult r = run_tool(
      str("run ", folder.path("odd.rlx"), " --input x=", folder.path("x.npy"), " --save ", folder.path("deep/out")));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "deep/out/a_b_c.npy")) << r.out;
  EXPECT_EQ(read_npy(folder.path("deep/out/a_b_c.npy")), Tensor::f32({3}, {2, 5, -6}));
  EXPECT_EQ(read_npy(folder.path("deep/out/x-1.2.npy")), Tensor::f32({3}, {1, 2.5, -3}));
}

TEST_F(Cli, RepeatMovesStatesOnAndReportsTimes) {
  folder.write("count.rlx", R"(graph @g {
  %x = input() : [] f32
  %s = state() : [] f32
  %y = add(%s, %x) : [] f32
  update %s = %y
  return %y
})");
  write_npy(folder.path("x.npy"), Tensor::f32({}, {2}));
  const ToolResult r =
      run_tool(str("run ", folder.path("count.rlx"), " --input x=", folder.path("x.npy"), " --repeat 5 --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["outputs"][0]["first"], json({10.0}));
  EXPECT_EQ(r.json()["times_ms"].size(), 5u);
}

TEST_F(Cli, PlanShowsMemoryAndSchedule) {
  const ToolResult text =
      run_tool(str("run ", toy, " --random-inputs --random-params --dim batch=4 --plan --output n --device reference"));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "plan: 4 steps on reference")) << text.out;
  EXPECT_TRUE(contains(text.out, "%b    softmax")) << text.out;

  const ToolResult r = run_tool(str("info ", toy, " --plan --dim '?0=4' --device reference --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json plan = r.json()["plan"];
  EXPECT_EQ(plan["steps"].size(), 4u);
  EXPECT_EQ(plan["steps"][0]["node"], "%a");
  EXPECT_EQ(plan["steps"][0]["shape"], json({4, 4}));
  EXPECT_EQ(plan["arena_bytes"], 64);
  EXPECT_EQ(plan["largest_live_bytes"], 64);
  EXPECT_EQ(plan["arena_ratio"], 1);
  EXPECT_EQ(plan["param_bytes"], 16);
}

TEST_F(Cli, InfoListsTheInterfaceAndCountsOps) {
  const ToolResult r = run_tool(str("info ", toy, " --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json info = r.json();
  EXPECT_EQ(info["inputs"][0]["shape"], json({"?0", 4}));
  EXPECT_EQ(info["inputs"][1]["dtype"], "i64");
  EXPECT_EQ(info["params"][0]["name"], "w");
  EXPECT_EQ(info["states"][0]["name"], "s");
  EXPECT_EQ(info["outputs"].size(), 3u);
  EXPECT_EQ(info["symbols"][0]["name"], "batch");
  EXPECT_EQ(info["nodes"], 8);
  EXPECT_EQ(info["param_bytes"], 16);
  // Descending count, then name.
  std::vector<std::string> ops;
  for (const json& op : info["ops"]) ops.push_back(op["op"]);
  EXPECT_EQ(ops, (std::vector<std::string>{"add", "input", "mul", "param", "softmax", "state"}));

  const ToolResult bound = run_tool(str("info ", toy, " --dim batch=7"));
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_TRUE(contains(bound.out, "x  [7, 4] f32")) << bound.out;
}

TEST_F(Cli, InfoPrintsTextThatReadsBackAsTheGraph) {
  const ToolResult r = run_tool(str("info ", toy, " --graph-text"));
  ASSERT_EQ(r.code, 0) << r.err;
  const size_t start = r.out.find("graph @toy {");
  ASSERT_NE(start, r.out.npos) << r.out;
  EXPECT_TRUE(parse(r.out.substr(start)) == parse(kToyGraph));
}

TEST_F(Cli, InfoWritesBytesInUnits) {
  const auto param_bytes = [&](const std::string& shape) {
    folder.write("p.rlx", str("graph @g {\n  %w = param() : ", shape, " u8\n  return %w\n}"));
    const ToolResult r = run_tool(str("info ", folder.path("p.rlx")));
    EXPECT_EQ(r.code, 0) << r.err;
    const size_t at = r.out.find("param bytes: ") + 13;
    return r.out.substr(at, r.out.find(',', at) - at);
  };
  EXPECT_EQ(param_bytes("[1023]"), "1023 B");
  EXPECT_EQ(param_bytes("[1024]"), "1.0 KB");
  EXPECT_EQ(param_bytes("[1536]"), "1.5 KB");
  EXPECT_EQ(param_bytes("[1048575]"), "1.0 MB");  // 1023.999 KB
  EXPECT_EQ(param_bytes("[3, 1048576]"), "3.0 MB");
  EXPECT_EQ(param_bytes("[5000, 1073741824]"), "5000.0 GB");
}

TEST_F(Cli, CheckComparesEveryWayWithTheEvaluator) {
  const ToolResult r = run_tool(str("check ", toy, " --dim batch=3 --seed 2 --json"));
  ASSERT_EQ(r.code, 0) << r.err << r.out;
  const json checks = r.json()["checks"];
  EXPECT_EQ(r.json()["ok"], true);
  std::vector<std::string> ways;
  std::map<std::string, std::vector<std::string>> by_device;
  for (const json& c : checks) {
    by_device[c["device"]].push_back(c["way"]);
    EXPECT_EQ(c["nodes"].size(), c["values"]) << c;
    if (c["device"] != "reference") continue;
    EXPECT_EQ(c["worst"]["max_abs"], 0) << c;
    EXPECT_EQ(c["values"], 4) << c;  // 4 computed values; 3 outputs and a state
  }
  ways = by_device["reference"];
  EXPECT_EQ(ways, (std::vector<std::string>{"every value kept", "planned", "no_reuse", "poison", "schedule=source"}));
  ways.insert(ways.end(), {"the passes alone, on the evaluator", "after the passes, every value kept"});
  EXPECT_EQ(by_device["cpu"], ways);
  if (by_device.contains("webgpu")) {  // where there is an adapter
    EXPECT_EQ(by_device["webgpu"], ways);
  }
  EXPECT_TRUE(contains(run_tool(str("check ", toy, " --dim batch=3")).out, str("ok: ", checks.size(), " ways agree")));
  EXPECT_TRUE(contains(run_tool(str("check ", toy, " --dim batch=3 --device cpu")).out, "ok: 7 ways agree"));
}

TEST_F(Cli, CheckListsTheWorstNodes) {
  const std::string mlp = RLX_SOURCE_DIR "/examples/mlp.rlx";
  const ToolResult r = run_tool(str("check ", mlp, " --dim batch=4 --device cpu --worst 2"));
  ASSERT_EQ(r.code, 0) << r.out;
  const size_t table = r.out.find("worst nodes");
  ASSERT_NE(table, r.out.npos) << r.out;
  const size_t next = r.out.find("\ncpu, planned", table);
  EXPECT_EQ(std::count(r.out.begin() + static_cast<long>(table), r.out.begin() + static_cast<long>(next), '\n'), 2);
}

TEST_F(Cli, ScheduleShowsKernelsAndPasses) {
  const ToolResult text = run_tool(str("info ", toy, " --schedule --dim batch=4 --device cpu"));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "mark_elementwise_regions")) << text.out;
  EXPECT_TRUE(contains(text.out, "cpu/rows")) << text.out;
  const ToolResult r = run_tool(str("info ", toy, " --schedule --dim batch=4 --device cpu --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  const json info = r.json();
  EXPECT_GT(info["passes"]["passes"].size(), 5u);
  for (const json& step : info["plan"]["steps"]) EXPECT_TRUE(step["kernel"].get<std::string>().starts_with("cpu"));
}

TEST_F(Cli, DevicesListsTheReference) {
  const ToolResult r = run_tool("devices --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const json list = r.json()["devices"];
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.back()["name"], "reference");
  EXPECT_EQ(list.back()["available"], true);
  EXPECT_TRUE(contains(run_tool("devices").out, "the oracle: plain loops in double"));
}

TEST_F(Cli, OpsListsEveryOpAndItsDefaults) {
  const ToolResult r = run_tool("ops --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const json ops = r.json()["ops"];
  EXPECT_EQ(ops.size(), all_ops().size());
  EXPECT_EQ(r.json()["summary"]["ops"], all_ops().size());
  const auto softmax = std::find_if(ops.begin(), ops.end(), [](const json& op) { return op["name"] == "softmax"; });
  ASSERT_NE(softmax, ops.end());
  EXPECT_EQ((*softmax)["attributes"][0], json({{"name", "axis"}, {"default", "-1"}}));
  EXPECT_EQ((*softmax)["oracle"], "kernel");
}

// A kernel, a decomposition, a view, a loop on the device: or a reason.
TEST_F(Cli, TheGpuRunsEveryOpOrSaysWhyNot) {
  const json all = run_tool("ops --json").json();
  for (const json& op : all["ops"]) {
    const std::string how = op["webgpu"];
    const bool runs = how == "kernel" || how == "decomposition" || how == "leaf" || how == "view" || how == "loop";
    EXPECT_TRUE(runs || (how.starts_with("host: ") && how != "host: no reason is stated")) << op["name"] << ": " << how;
  }
  EXPECT_LE(all["summary"]["webgpu"]["host"], 4);
  EXPECT_TRUE(contains(run_tool("ops").out, "; on the host, each for a reason: batched_dense_solve, dense_solve, det"));
}

TEST_F(Cli, TheOracleRunsEveryOp) {
  const ToolResult r = run_tool("ops");
  EXPECT_TRUE(contains(r.out, " 0 missing; the oracle runs 100 % of them.\n")) << r.out.substr(r.out.size() - 200);
}

TEST_F(Cli, DocsOpsMdIsTheOutputOfTheTool) {
  const bool same = run_tool("ops --markdown").out == read_whole_file(RLX_SOURCE_DIR "/docs/ops.md");
  EXPECT_TRUE(same) << "docs/ops.md is not what the op table says. Write it anew:\n"
                       "  build/dev/bin/rlx ops --markdown > docs/ops.md";
}

TEST_F(Cli, AClosedPipeIsNoError) {
  // More than a pipe holds, so that the writer notices.
  folder.write("big.rlx", [] {
    std::string text = "graph @big {\n  %x = input() : [4] f32\n";
    for (int i = 1; i <= 5000; ++i) text += str("  %", i, " = neg(%", i == 1 ? "x" : str(i - 1), ") : [4] f32\n");
    return text + "  return %5000\n}\n";
  }());
  const ToolResult r =
      run_shell(str("(", RLX_TOOL, " info ", folder.path("big.rlx"), " --graph-text; echo code $? >&2) | true"));
  EXPECT_EQ(r.err, "code 0\n");
  const ToolResult status = run_tool(str("info ", folder.path("big.rlx"), " --graph-text >&-"));
  EXPECT_EQ(status.code, 1);
  EXPECT_TRUE(contains(status.err, "rlx: Standard output cannot be written")) << status.err;
}

TEST_F(Cli, WarningsGoToStandardError) {
  const ToolResult r = run_shell("RLX_NO_SUCH_SWITCH=1 " RLX_TOOL " run " + toy +
                                 " --random-inputs --random-params --dim batch=1 --output n");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "rlx: warning: Environment variable RLX_NO_SUCH_SWITCH is not one that rlx knows.\n");
  EXPECT_TRUE(r.out.starts_with("n: [] i64")) << r.out;
}

TEST_F(Cli, TheBundledExampleRunsAndChecks) {
  const std::string mlp = RLX_SOURCE_DIR "/examples/mlp.rlx";
  const ToolResult r = run_tool(str("run ", mlp, " --random-inputs --random-params --dim batch=4 --plan --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["outputs"][0]["shape"], json({4, 10}));
  EXPECT_NEAR(r.json()["outputs"][0]["mean"].get<double>(), 0.1, 1e-6);  // rows of a softmax over 10
  EXPECT_EQ(r.json()["outputs"][0]["nan"], 0);
  const ToolResult check = run_tool(str("check ", mlp, " --dim batch=4"));
  EXPECT_EQ(check.code, 0) << check.out << check.err;
}

}  // namespace

}  // namespace rlx::test
