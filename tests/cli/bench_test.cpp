// rlx bench: the shapes of real models and the cases that op_tests writes.
#include <gtest/gtest.h>

#include <fstream>

#include "core/npy.h"
#include "rlx/tensor.h"
#include "support/temp_folder.h"
#include "tool.h"

namespace rlx::test {

TEST(Bench, MeasuresAnOpBesideThePeaks) {
  const TempFolder folder;
  std::ofstream(folder.path("round-1.rlx")) << R"(graph @case {
  %x0 = input() : [3, 5] f32
  %1 = round(%x0) : [3, 5] f32
  return y=%1
})";
  write_npz(folder.path("round-1.npz"), {{"x0", Tensor(DType::F32, {3, 5})}});
  const ToolResult r = run_tool(str("bench --op round --seconds 0 --threads 1 --json --cases ", folder.path("")));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_GT(r.json()["peaks"]["gflops"], 0.1);
  EXPECT_GT(r.json()["peaks"]["copy_gb_per_s"], 0.01);
  ASSERT_EQ(r.json()["ops"].size(), 1u);  // no shape of a real model rounds
  const auto row = r.json()["ops"][0];
  EXPECT_EQ(row["op"], "round");
  EXPECT_EQ(row["case"], "round-1");
  EXPECT_EQ(row["kernel"], "cpu/blocks");
  EXPECT_GT(row["best_ms"], 0);
  EXPECT_LE(row["best_ms"], row["median_ms"]);
}

TEST(Bench, LetsOpTestsWriteTheCases) {
  const ToolResult r = run_tool("bench --op softmax --seconds 0 --threads 1 --json");
  ASSERT_EQ(r.code, 0) << r.err;
  int cases = 0, shapes = 0;
  const auto rows = r.json()["ops"];
  for (const auto& row : rows) {
    EXPECT_EQ(row["op"], "softmax");
    ++(row["case"].get<std::string>().starts_with("softmax-") ? cases : shapes);
  }
  EXPECT_GT(cases, 10);
  EXPECT_GT(shapes, 0);
  const ToolResult none = run_tool("bench --op softmax --seconds 0 --threads 1 --json --no-cases");
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.json()["ops"].size(), static_cast<size_t>(shapes));
}

TEST(Bench, SaysWhatIsWrongInOneSentence) {
  const ToolResult unknown = run_tool("bench --op sofmax");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.err, "rlx: There is no op 'sofmax'; 'rlx ops' lists them.\n");
  const ToolResult nowhere = run_tool("bench --op round --cases /nowhere");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.err.find("Folder '/nowhere' is not there"), std::string::npos) << nowhere.err;
}

}  // namespace rlx::test
