// rlx bench: whole models, the shapes of real ones and the cases that op_tests writes.
#include <gtest/gtest.h>

#include <fstream>

#include "core/npy.h"
#include "rlx/tensor.h"
#include "support/temp_folder.h"
#include "times.h"
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

// The processor's peaks say nothing about a GPU.
TEST(Bench, ComparesAGpuWithNoPeaks) {
  const ToolResult cpu = run_tool("bench --op softmax --seconds 0 --no-cases --device cpu");
  EXPECT_NE(cpu.out.find("peaks ("), cpu.out.npos) << cpu.out << cpu.err;
  EXPECT_NE(cpu.out.find("of peak"), cpu.out.npos) << cpu.out;
  if (run_tool("devices --json").json()["devices"][0]["available"] != true) GTEST_SKIP() << "no adapter";
  const ToolResult gpu = run_tool("bench --op softmax --seconds 0 --no-cases --device webgpu");
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_NE(gpu.out.find("GB/s"), gpu.out.npos) << gpu.out;
  for (const std::string what : {"peak", "of copy", "%"}) EXPECT_EQ(gpu.out.find(what), gpu.out.npos) << gpu.out;
  const nlohmann::json json = run_tool("bench --op softmax --seconds 0 --no-cases --device webgpu --json").json();
  EXPECT_FALSE(json.contains("peaks"));
  EXPECT_EQ(json["device"], "webgpu");
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

TEST(BenchModel, MeasuresWholeRuns) {
  const std::string mlp = str("bench ", RLX_SOURCE_DIR, "/examples/mlp.rlx --dim batch=8 ");
  const ToolResult r = run_tool(mlp + "--warmup 2 --runs 7 --threads 1 --device cpu --json");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  const auto b = r.json();
  EXPECT_EQ(b["runs"], 7);
  EXPECT_EQ(b["warmup"], 2);
  EXPECT_EQ(b["device"], "cpu");
  EXPECT_EQ(b["threads"], 1);
  EXPECT_EQ(b["inputs"][0]["shape"], nlohmann::json({8, 16}));
  for (const char* field : {"load_ms", "compile_ms", "first_run_ms", "min_ms", "runs_per_s", "flops", "gflop_per_s"})
    EXPECT_GT(b[field], 0) << field;
  EXPECT_LE(b["min_ms"], b["median_ms"]);
  EXPECT_LE(b["median_ms"], b["p90_ms"]);
  EXPECT_GT(b["peak_bytes"], 1 << 20);
  EXPECT_GE(b["peak_bytes"], b["arena_bytes"]);
  const ToolResult text = run_tool(mlp + "--seconds 0.05");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* word : {"median", "p90", "min", "throughput", "peak memory", "compile"})
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
}

TEST(BenchModel, TimesAreOrderStatistics) {
  cli::Times times;
  for (const double ms : {5, 1, 9, 3, 7, 2, 8, 4, 10, 6}) times.add(ms);
  EXPECT_EQ(times.min(), 1);
  EXPECT_EQ(times.median(), 5.5);
  EXPECT_EQ(times.p90(), 9);
  cli::Times one;
  one.add(4);
  EXPECT_EQ(one.p90(), 4);
  EXPECT_EQ(one.median(), 4);
}

}  // namespace rlx::test
