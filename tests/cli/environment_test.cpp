// The environment's switches fill the compile options of a run; a bad value is one sentence.
#include <gtest/gtest.h>

#include "rlx/error.h"
#include "tool.h"

namespace rlx::test {

using nlohmann::json;

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

// What a switch of the diagnostics makes the tool say or write (spec 40, 6; 20, 1.7).
TEST_F(Environment, SwitchesReport) {
  const std::string command =
      str("run ", RLX_SOURCE_DIR, "/examples/mlp.rlx --random-inputs --random-params --dim batch=2 ");
  const auto says = [&](const std::string& variable, const std::string& device) {
    const ToolResult r = run(variable, command + "--device " + device);
    EXPECT_EQ(r.code, 0) << variable << "\n" << r.err;
    return r.err;
  };
  const auto expect = [&](const std::string& variable, const std::string& device, const std::string& what) {
    const std::string said = says(variable, device);
    EXPECT_NE(said.find(what), said.npos) << variable << " on " << device << " says: " << said;
  };
  const TempFolder folder;
  expect("RLX_FUSION_REPORT=1", "cpu", "fusion:\n");
  expect("RLX_DISPATCH_REPORT=1", "cpu", "dispatch:\n");
  expect("RLX_VERBOSE=1", "cpu", "compiled for cpu: ");
  expect("RLX_VERBOSE=1", "cpu", "fuse_matmul_bias_act: ");
  says(str("RLX_IR_DUMP=", folder.path("ir")), "cpu");
  EXPECT_TRUE(read_whole_file(folder.path("ir/00-input.rlx")).starts_with("graph @"));
  says(str("RLX_TRACE_PERFETTO=", folder.path("trace.json")), "cpu");
  const json trace = json::parse(read_whole_file(folder.path("trace.json")));
  EXPECT_EQ(trace.at(0)["name"], "run");
  EXPECT_EQ(trace.size(), 1 + trace.at(0)["args"]["steps"].get<size_t>());
  expect("RLX_WGPU_DUMP_NODES=1 RLX_WGPU_DUMP_NODES_LIMIT=1 RLX_WGPU_DUMP_FLAT=2", "cpu", "not zero  [2]\n");
  EXPECT_EQ(says("RLX_WGPU_NAN_TRACE=1", "cpu"), "");  // nothing is NaN
  const json list = run_tool("devices --json").json()["devices"];
  if (list[0]["available"] != true) return;  // no adapter
  expect("RLX_WGPU_SCHEDULE=1", "webgpu", "schedule: ");
  expect("RLX_DISPATCH_REPORT=1", "webgpu", "schedule: ");
  says(str("RLX_TRACE_PERFETTO=", folder.path("gpu.json")), "webgpu");
  EXPECT_NE(read_whole_file(folder.path("gpu.json")).find("\"kernel\": \"webgpu/softmax\""), std::string::npos);
  for (const std::string variable :
       {"RLX_WGPU_BOUNDS_CHECKS=1", "RLX_WGPU_FORCE_INPUT_UPLOAD=1", "RLX_BENCH_DISPATCH_ONLY=1",
        "RLX_WGPU_DEBUG_ATTN_ALIAS=1", "RLX_WGPU_MATMUL_F32_ONLY=1", "RLX_WGPU_F16_WEIGHTS=1",
        "RLX_WGPU_NO_F16_SHADOW=1", "RLX_WGPU_NO_PACKED_BSHD_ATTN=1", "RLX_FUSE_ATTN_THRESHOLD=0",
        "RLX_FK_BATCH_SINGLE_KERNEL=0", "RLX_WGPU_NO_HOST_STEPS=1", "RLX_TESTS_WITHOUT_WEBGPU=1"})
    EXPECT_EQ(says(variable, "webgpu"), "") << variable;
}

TEST_F(Environment, SwitchesReachACheck) {
  const std::string check = str("check ", RLX_SOURCE_DIR, "/examples/mlp.rlx --dim batch=2 ");
  const auto expect_failure = [&](const std::string& variable, const std::string& device, const std::string& what) {
    const ToolResult r = run(variable, check + "--device " + device);
    EXPECT_EQ(r.code, 1) << variable;
    EXPECT_NE(r.out.find(what), r.out.npos) << variable << "\n" << r.out;
  };
  expect_failure("RLX_SKIP_PASSES=nonsense", "cpu", "There is no pass 'nonsense'");
  // A device that the environment's library or adapter does not give is none that is there.
  for (const std::string variable : {"RLX_WEBGPU_LIBRARY=/nowhere/libwebgpu.so", "RLX_WEBGPU_ADAPTER=abacus"}) {
    const ToolResult r = run(variable, check);
    EXPECT_EQ(r.code, 0) << variable << "\n" << r.out << r.err;
    EXPECT_EQ(r.out.find("webgpu"), r.out.npos) << variable << "\n" << r.out;
  }
  // The variable names the one device, unless the command line does.
  EXPECT_NE(run("RLX_DEVICE=reference", check).out.find("ok: 5 ways agree"), std::string::npos);
  EXPECT_EQ(run("RLX_DEVICE=reference", check).out.find("cpu"), std::string::npos);
  EXPECT_EQ(run("RLX_DEVICE=reference", check + "--device cpu").out.find("reference"), std::string::npos);
  EXPECT_EQ(run("RLX_DEVICE=auto", check).out, run_tool(check).out);
  EXPECT_EQ(run("RLX_DEVICE=abacus", check).code, 1);
  if (run_tool("devices --json").json()["devices"][0]["available"] != true) return;  // no adapter
  expect_failure("RLX_WGPU_KERNELS=/nowhere", "webgpu", "/nowhere");
  // The adapter of the command line comes before that of the environment.
  const ToolResult r = run("RLX_WEBGPU_ADAPTER=abacus", check + "--device webgpu:0");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("ok: 7 ways agree"), r.out.npos) << r.out;
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
  const json list = run_tool("devices --json").json()["devices"];
  if (list[0]["available"] != true) return;  // no adapter
  std::string known;
  for (size_t i = 0; i < list[0]["adapters"].size(); ++i)
    known += str(i == 0 ? "" : ", ", i, " '", list[0]["adapters"][i]["name"].get<std::string>(), "'");
  const std::string sentence = str("There is no WebGPU adapter 'abacus'; there are: ", known, ".");
  expect("RLX_DEVICE=webgpu RLX_WEBGPU_ADAPTER=abacus", "Device 'webgpu' is not available: " + sentence);
  expect("RLX_DEVICE=webgpu:abacus", "Device 'webgpu' is not available: " + sentence);
  // auto does without, and says so; the list has all of them.
  const ToolResult by_default = run("RLX_WEBGPU_ADAPTER=abacus", toy + " --device auto --json");
  EXPECT_EQ(by_default.json()["device"], "cpu");
  EXPECT_EQ(by_default.err, "rlx: warning: Device 'webgpu' is not used: " + sentence + "\n");
  EXPECT_EQ(run("RLX_WEBGPU_ADAPTER=abacus", "devices --json").json()["devices"], list);
}

}  // namespace rlx::test
