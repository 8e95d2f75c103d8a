// The same program on a machine without any WebGPU library.
#include <gtest/gtest.h>

#include <algorithm>

#include "tool.h"

namespace rlx::test {

namespace {

using nlohmann::json;

class NoWebGpu : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__APPLE__)
    GTEST_SKIP() << "a library cannot be put before the sanitizer's";
#endif
  }
  ToolResult run(const std::string& args) const {
    return run_shell(str("unset RLX_WEBGPU_LIBRARY; LD_PRELOAD=", RLX_NO_WEBGPU, " ", RLX_TOOL, " ", args));
  }
  static int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

  const std::string mlp =
      str("run ", RLX_SOURCE_DIR, "/examples/mlp.rlx --random-inputs --random-params --dim batch=2 ");
  const std::string missing = "There is no WebGPU library: looked for ";
  const std::string advice = ". './dev setup' fetches wgpu-native; another library is named by RLX_WEBGPU_LIBRARY.\n";
};

TEST_F(NoWebGpu, AutoUsesTheCpuAndSaysWhyOnce) {
  for (const std::string device : {"", "--device auto "}) {
    const ToolResult r = run(mlp + device + "--json");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.json()["device"], "cpu");
    EXPECT_TRUE(r.err.starts_with("rlx: warning: Device 'webgpu' is not used: " + missing)) << r.err;
    EXPECT_TRUE(r.err.ends_with(advice)) << r.err;
    EXPECT_EQ(lines(r.err), 1) << r.err;
  }
}

TEST_F(NoWebGpu, AskingForTheGpuIsOneSentence) {
  const ToolResult r = run(mlp + "--device webgpu");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(r.err.starts_with("rlx: Device 'webgpu' is not available: " + missing)) << r.err;
  EXPECT_TRUE(r.err.ends_with(advice)) << r.err;
  EXPECT_EQ(lines(r.err), 1) << r.err;
}

TEST_F(NoWebGpu, TheCpuIsSilentAndEverythingElseWorks) {
  const ToolResult cpu = run(mlp + "--device cpu");
  EXPECT_EQ(cpu.code, 0);
  EXPECT_EQ(cpu.err, "");
  EXPECT_EQ(run(str("check ", RLX_SOURCE_DIR, "/examples/mlp.rlx --dim batch=2")).code, 0);
  EXPECT_EQ(run("ops").code, 0);
}

TEST_F(NoWebGpu, DevicesListsTheCpuAndTheReason) {
  const ToolResult r = run("devices --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const json list = r.json()["devices"];
  std::vector<std::string> available;
  for (const json& d : list) {
    if (d["available"] == true) available.push_back(d["name"]);
    if (d["name"] == "webgpu") {
      EXPECT_TRUE(d["why_not"].get<std::string>().starts_with(missing)) << d;
      EXPECT_TRUE(d["adapters"].empty());
    }
  }
  EXPECT_EQ(available, (std::vector<std::string>{"cpu", "reference"}));
}

// The library that is named must be there, whatever others are installed.
TEST_F(NoWebGpu, ANamedLibraryThatIsNotThereIsNamed) {
  const ToolResult r =
      run_shell(str("RLX_WEBGPU_LIBRARY=/nowhere/libwebgpu.so ", RLX_TOOL, " ", mlp, "--device webgpu"));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("looked for /nowhere/libwebgpu.so. "), r.err.npos) << r.err;
  EXPECT_EQ(lines(r.err), 1) << r.err;
}

}  // namespace

}  // namespace rlx::test
