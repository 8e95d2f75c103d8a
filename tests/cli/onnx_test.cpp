// The subcommands on ONNX models: one graph, one that runs in stages, one whose input has no shape.
// fixtures/make_models.py says what they compute.
#include <gtest/gtest.h>

#include "core/npy.h"
#include "rlx/tensor.h"
#include "tool.h"

namespace rlx::test {

namespace {

using nlohmann::json;

const std::string kModels = RLX_SOURCE_DIR "/tests/cli/fixtures/";
const std::string kLinear = kModels + "linear.onnx", kStaged = kModels + "staged.onnx";

class CliOnnx : public testing::Test {
 protected:
  CliOnnx() {
    write_npy(folder.path("x.npy"), Tensor::f32({2, 3}, {1, 2, 3, 0, 0, 0}));
    write_npy(folder.path("line.npy"), Tensor::f32({6}, {1, -2, 3, -4, 5, -6}));
    write_npy(folder.path("shape.npy"), Tensor::i64({2}, {2, 3}));
  }
  std::string staged(const std::string& command, const std::string& more = "") const {
    return str(command, " ", kStaged, " ", more, " --input x=", folder.path("line.npy"),
               " shape=", folder.path("shape.npy"));
  }
  json ok(const std::string& args) const {
    const ToolResult r = run_tool(args);
    EXPECT_EQ(r.code, 0) << args << "\n" << r.err << r.out;
    return r.code == 0 ? r.json() : json();
  }
  const TempFolder folder;
};

TEST_F(CliOnnx, RunsAndSaves) {
  const ToolResult r =
      run_tool(str("run ", kLinear, " --input x=", folder.path("x.npy"), " --save ", folder.path("out")));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(read_npy(folder.path("out/y_0.npy")), Tensor::f32({2, 4}, {0, 0.5, 1, 5.5, 1, 0, 0, 2}));
}

TEST_F(CliOnnx, RunsInStagesWhereShapesDependOnData) {
  const json r = ok(staged("run", "--json --plan"));
  EXPECT_EQ(r["outputs"][0]["shape"], json({2, 3}));
  EXPECT_EQ(r["outputs"][0]["first"], json({-1.0, -2.0, -3.0, -4.0, -5.0, -6.0}));
}

TEST_F(CliOnnx, MissingInputsAreNamedWithTheirShapes) {
  EXPECT_EQ(run_tool("run " + kLinear).err,
            "rlx: Inputs are not given: 'x' ([batch, 3] f32); --input NAME=SOURCE gives one, --random-inputs all.\n");
  EXPECT_EQ(run_tool("run " + kStaged).err,
            "rlx: Inputs are not given: 'x' ([n] f32), 'shape' ([rank] i64); --input NAME=SOURCE gives one, "
            "--random-inputs all.\n");
}

TEST_F(CliOnnx, AnInputWithoutAShapeTakesArraysAlone) {
  const std::string model = kModels + "any_shape.onnx";
  EXPECT_EQ(ok(str("run ", model, " --json --input x=", folder.path("x.npy")))["outputs"][0]["shape"], json({2, 3}));
  const ToolResult r = run_tool(str("run ", model, " --input x=random:3"));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("takes .npy and .npz files only, because the model does not say its shape."), r.err.npos)
      << r.err;
  EXPECT_NE(run_tool(str("bench ", model)).err.find("Inputs are not given: 'x' ("), std::string::npos);
}

TEST_F(CliOnnx, Bench) {
  const json whole = ok(str("bench ", kLinear, " --dim batch=4 --runs 5 --json"));
  EXPECT_EQ(whole["runs"], 5);
  EXPECT_EQ(whole["stages"], 1);
  EXPECT_EQ(whole["inputs"][0]["shape"], json({4, 3}));
  EXPECT_GE(whole["flops"], 2 * 4 * 3 * 4);
  const json parts = ok(staged("bench", "--runs 5 --json"));
  EXPECT_GT(parts["median_ms"], 0);
  EXPECT_GE(parts["compile_ms"], 0);
  EXPECT_GE(parts["stages"], 1);
}

TEST_F(CliOnnx, InfoAndItsPage) {
  const json whole = ok(str("info ", kLinear, " --ops --json --graph ", folder.path("g.html")));
  EXPECT_EQ(whole["inputs"][0]["shape"].size(), 2u);
  EXPECT_EQ(whole["outputs"][0]["name"], "y:0");
  EXPECT_EQ(whole["symbols"][0]["name"], "batch");
  EXPECT_EQ(whole["staged"], false);
  EXPECT_GT(whole["constant_bytes"], 60);
  EXPECT_LE(whole["ops_after"].size(), whole["ops"].size());
  EXPECT_TRUE(read_whole_file(folder.path("g.html")).starts_with("<!doctype html>"));

  EXPECT_EQ(ok(str("info ", kStaged, " --json"))["staged"], true);
  const json parts = ok(staged("info", str("--json --ops --plan --graph ", folder.path("s.html"))));
  ASSERT_GE(parts["stages"].size(), 1u);
  EXPECT_TRUE(parts["stages"][0].contains("plan"));
}

TEST_F(CliOnnx, CheckAndTrace) {
  const json checked = ok(str("check ", kLinear, " --dim batch=4 --device cpu --json"));
  EXPECT_EQ(checked["checks"][0]["nodes"][0]["origin"], "product");  // the node's name in the file
  EXPECT_EQ(checked["checks"][0]["nodes"][1]["origin"], "Add -> z");
  EXPECT_EQ(run_tool(staged("check")).code, 0);
  for (const std::string& command :
       {str("trace ", kLinear, " ", folder.path("t.json"), " --dim batch=2"), staged("trace", folder.path("t.json"))}) {
    const ToolResult r = run_tool(command);
    ASSERT_EQ(r.code, 0) << r.err;
    const json events = json::parse(read_whole_file(folder.path("t.json")))["traceEvents"];
    int64_t steps = 0;
    for (const json& e : events) steps += e.value("cat", "") == "step" ? 1 : 0;
    EXPECT_GE(steps, 3);  // three runs
  }
}

}  // namespace

}  // namespace rlx::test
