// Every switch of the environment sets the option that is its own. The environment is read once per process, so that
// each has a process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>

#include "rlx/runtime.h"
#include "support/temp_folder.h"

namespace rlx::test {

namespace {

struct Row {
  std::string_view name, value;
  bool (*is_set)(const CompileOptions&);
};

const Row kRows[] = {
    {"RLX_BENCH_DISPATCH_ONLY", "1", [](const CompileOptions& o) { return o.webgpu.skip_readback; }},
    {"RLX_DEVICE", "cpu", [](const CompileOptions& o) { return o.device == "cpu"; }},
    {"RLX_DISPATCH_REPORT", "1", [](const CompileOptions& o) { return o.dispatch_report; }},
    {"RLX_FK_BATCH_SINGLE_KERNEL", "0", [](const CompileOptions& o) { return !o.batch_single_kernel; }},
    {"RLX_FUSE_ATTN_THRESHOLD", "7", [](const CompileOptions& o) { return o.attention_block_rows == 7; }},
    {"RLX_FUSION_REPORT", "1", [](const CompileOptions& o) { return o.fusion_report; }},
    {"RLX_IR_DUMP", "ir", [](const CompileOptions& o) { return o.ir_dump == "ir"; }},
    {"RLX_KERNEL_DISPATCH", "common",
     [](const CompileOptions& o) { return o.kernel_dispatch == KernelDispatch::kCommon; }},
    {"RLX_NO_IN_PLACE", "1", [](const CompileOptions& o) { return !o.in_place; }},
    {"RLX_NO_REUSE", "1", [](const CompileOptions& o) { return o.no_reuse; }},
    {"RLX_POISON", "1", [](const CompileOptions& o) { return o.poison; }},
    {"RLX_PRECISION", "bf16", [](const CompileOptions& o) { return o.precision == Precision::kBf16; }},
    {"RLX_SCHEDULE", "source", [](const CompileOptions& o) { return o.schedule == ScheduleOrder::kSource; }},
    {"RLX_SKIP_PASSES", "a,b",
     [](const CompileOptions& o) {
       return o.skip_passes == std::vector<std::string>{"a", "b"};
     }},
    {"RLX_THREADS", "3", [](const CompileOptions& o) { return o.threads == 3; }},
    {"RLX_TRACE_PERFETTO", "t.json", [](const CompileOptions& o) { return o.trace_file == "t.json"; }},
    {"RLX_VERBOSE", "1", [](const CompileOptions& o) { return o.verbose; }},
    {"RLX_VERIFY_PLAN", "1", [](const CompileOptions& o) { return o.verify_plan; }},
    {"RLX_WEBGPU_ADAPTER", "1", [](const CompileOptions& o) { return o.webgpu.adapter == "1"; }},
    {"RLX_WEBGPU_LIBRARY", "x.so", [](const CompileOptions& o) { return o.webgpu.library == "x.so"; }},
    {"RLX_WGPU_BOUNDS_CHECKS", "0", [](const CompileOptions& o) { return !o.webgpu.bounds_checks; }},
    {"RLX_WGPU_BOUNDS_CHECKS", "1", [](const CompileOptions& o) { return o.webgpu.bounds_checks; }},
    {"RLX_WGPU_CHECK_INDICES", "0", [](const CompileOptions& o) { return !o.webgpu.check_indices; }},
    {"RLX_WGPU_CHECK_INDICES", "1", [](const CompileOptions& o) { return o.webgpu.check_indices; }},
    {"RLX_WGPU_DEBUG_ATTN_ALIAS", "1", [](const CompileOptions& o) { return o.webgpu.attention_alias_report; }},
    {"RLX_WGPU_DUMP_FLAT", "5", [](const CompileOptions& o) { return o.debug.dump_flat == 5; }},
    {"RLX_WGPU_DUMP_NODES", "1", [](const CompileOptions& o) { return o.debug.dump_nodes; }},
    {"RLX_WGPU_DUMP_NODES_LIMIT", "6", [](const CompileOptions& o) { return o.debug.dump_limit == 6; }},
    {"RLX_WGPU_F16_WEIGHTS", "1", [](const CompileOptions& o) { return o.webgpu.f16_weights; }},
    {"RLX_WGPU_F32_UNIFORM", "1", [](const CompileOptions& o) { return o.webgpu.f32_uniform; }},
    {"RLX_WGPU_FORCE_INPUT_UPLOAD", "1", [](const CompileOptions& o) { return o.webgpu.force_input_upload; }},
    {"RLX_WGPU_KERNELS", "x", [](const CompileOptions& o) { return o.webgpu.kernels == "x"; }},
    {"RLX_WGPU_MATMUL_F32_ONLY", "1", [](const CompileOptions& o) { return o.webgpu.matmul_f32_only; }},
    {"RLX_WGPU_NAN_TRACE", "1", [](const CompileOptions& o) { return o.debug.nan_trace; }},
    {"RLX_WGPU_NO_F16_SHADOW", "1", [](const CompileOptions& o) { return !o.webgpu.f16_mirror; }},
    {"RLX_WGPU_NO_HOST_STEPS", "1", [](const CompileOptions& o) { return o.webgpu.no_host_steps; }},
    {"RLX_WGPU_NO_PACKED_BSHD_ATTN", "1", [](const CompileOptions& o) { return !o.webgpu.packed_attention; }},
    {"RLX_WGPU_NO_SUBGROUPS", "1", [](const CompileOptions& o) { return !o.webgpu.subgroups; }},
    {"RLX_WGPU_READ_ONCE", "0", [](const CompileOptions& o) { return o.webgpu.read_once == false; }},
    {"RLX_WGPU_READ_ONCE", "1", [](const CompileOptions& o) { return o.webgpu.read_once == true; }},
    {"RLX_WGPU_SCHEDULE", "1", [](const CompileOptions& o) { return o.webgpu.schedule_report; }},
};

void exit_with(const Row& row) {
  ::setenv(std::string(row.name).c_str(), std::string(row.value).c_str(), 1);
  std::exit(row.is_set(CompileOptions::from_environment()) ? 0 : 1);
}

// A program with options of its own, which say nothing of a library: 0 if it looks for the one that the environment
// names.
void compile_with_library_of_environment() {
  ::setenv("RLX_WEBGPU_LIBRARY", "/nowhere/libwebgpu.so", 1);
  Graph graph("g");
  graph.output(graph.input("x", {{2}, DType::F32}), "y");
  try {
    compile(std::move(graph), CompileOptions{.device = "webgpu"});
  } catch (const Error& e) {
    std::exit(e.message().find("/nowhere/libwebgpu.so") == std::string::npos ? 1 : 0);
  }
  std::exit(1);
}

}  // namespace

TEST(EnvironmentDeathTest, EverySwitchSetsItsOption) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const Row& row : kRows)
    EXPECT_EXIT(exit_with(row), testing::ExitedWithCode(0), "") << row.name << "=" << row.value;
}

// What there is on a machine is not a program's business.
TEST(EnvironmentDeathTest, NamesTheLibraryOfProgramsThatMakeTheirOptions) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(compile_with_library_of_environment(), testing::ExitedWithCode(0), "");
}

// A switch that has no row above; and one that the header does not name.
TEST(EnvironmentSwitches, AreAllTestedAndDocumented) {
  std::set<std::string, std::less<>> tested;
  for (const Row& row : kRows) tested.emplace(row.name);
  const std::string source = read_whole_file(RLX_SOURCE_DIR "/src/runtime/environment.cpp");
  const std::string header = read_whole_file(RLX_SOURCE_DIR "/include/rlx/runtime.h");
  const std::regex row("\n    \\{\"(RLX_[A-Z0-9_]+)\",");
  std::set<std::string, std::less<>> known;
  for (std::sregex_iterator it(source.begin(), source.end(), row), end; it != end; ++it) known.insert((*it)[1]);
  EXPECT_EQ(known, tested);
  for (const std::string& name : known)
    EXPECT_TRUE(std::regex_search(header, std::regex("\\b" + name + "\\b"))) << name << " is not in rlx/runtime.h";
}

}  // namespace rlx::test
