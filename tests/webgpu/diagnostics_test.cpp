// What the switches of spec 40, 6 report.
#include <cmath>

#include "rlx/log.h"
#include "rlx/ops.h"
#include "runtime/device_program.h"
#include "support/temp_folder.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

// log(x) of a negative number is NaN; what follows spreads it.
Graph logarithm() {
  Graph g;
  const Value x = g.input("x", {{2, 3}, DType::F32}), s = g.state("s", {{2, 3}, DType::F32});
  const Value y = ops::softmax(x);
  const Value z = ops::softmax(ops::log(x));
  g.update(s, s + y);
  g.output(z, "z");
  return g;
}

const Tensor kGood = Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}), kBad = Tensor::f32({2, 3}, {1, 2, 3, 4, -5, 6});

struct Log {
  std::string text;
  Log() {
    set_log([this](LogLevel level, std::string_view line) {
      if (level == LogLevel::kReport) text += line;
    });
  }
  ~Log() { set_log({}); }
};

}  // namespace

using DiagnosticsOnWebGpu = WebGpu;

TEST_F(DiagnosticsOnWebGpu, TheFirstNodeThatIsNotFinite) {
  for (const char* device : {"webgpu", "cpu", "reference"}) {
    CompileOptions options = webgpu_options();
    options.device = device;
    Executable exe = compile(logarithm(), options);
    exe.run({{"x", kGood}});
    const Tensor state = exe.read_state("s");
    EXPECT_FALSE(exe.debug_first_nan_node({{"x", kGood}}).has_value());
    const auto found = exe.debug_first_nan_node({{"x", kBad}});
    ASSERT_TRUE(found.has_value()) << device;
    EXPECT_EQ(found->op, "log");
    EXPECT_EQ(found->element, 4);
    EXPECT_EQ(found->count, 1);
    EXPECT_TRUE(std::isnan(found->value));
    EXPECT_FALSE(found->last_finite_node.empty());
    EXPECT_LE(found->last_finite_low, found->last_finite_high);
    EXPECT_EQ(exe.read_state("s"), state);  // nothing has happened
  }
}

TEST_F(DiagnosticsOnWebGpu, NanTraceAndNodeDumps) {
  const Log log;
  CompileOptions options = webgpu_options();
  options.debug.nan_trace = true;
  Executable exe = compile(logarithm(), options);
  const Tensor good = exe.run({{"x", kGood}}).at("z");
  EXPECT_EQ(log.text, "");
  exe.run({{"x", kBad}});
  EXPECT_NE(log.text.find("(log, [2, 3] f32): 1 of 6 elements are not finite, the first at 4; from 1 on: ["),
            std::string::npos)
      << log.text;
  EXPECT_EQ(exe.outputs().size(), 1u);

  options.debug = {.dump_nodes = true, .dump_limit = 2, .dump_flat = 5};
  Executable dumps = compile(logarithm(), options);
  EXPECT_EQ(dumps.run({{"x", kGood}}).at("z"), good);
  EXPECT_NE(log.text.find("largest  not zero  [5]"), std::string::npos) << log.text;
  EXPECT_NE(log.text.find("[2, 3] f32  6        6         6"), std::string::npos) << log.text;
}

TEST_F(DiagnosticsOnWebGpu, ScheduleReport) {
  const Log log;
  CompileOptions options = webgpu_options();
  options.webgpu.schedule_report = true;
  compile(logarithm(), options);
  EXPECT_NE(log.text.find("0 on the host"), std::string::npos) << log.text;
  EXPECT_NE(log.text.find("softmax"), std::string::npos) << log.text;
}

// The report of what runs each op has the schedule's beside it, and steps in loops are in both counts.
TEST_F(DiagnosticsOnWebGpu, DispatchReportHasTheSchedule) {
  const Log log;
  Graph g;
  const TensorType type{{3, 4}, DType::F32};
  const auto branch = [&](bool first) {
    auto b = std::make_shared<Graph>("branch");
    const Value v = b->input("x", type);
    b->output(first ? ops::softmax(v) : ops::transpose(ops::reshape(v, {.new_shape = {4, 3}}), {.perm = {1, 0}}), "y");
    return b;
  };
  const Value p = g.input("p", {{}, DType::Bool}), x = g.input("x", type);
  g.output(ops::if_(Values{p, x}, {.then_branch = branch(true), .else_branch = branch(false)}), "y");
  CompileOptions options = webgpu_options();
  options.dispatch_report = true;
  options.webgpu.min_loop_work = 0;
  options.skip_passes = {"lower_control_flow"};
  compile(g, options);
  EXPECT_NE(log.text.find("dispatch:\n"), log.text.npos) << log.text;
  EXPECT_NE(log.text.find("schedule: "), log.text.npos) << log.text;
  EXPECT_NE(log.text.find(" MiB; fft: 0 on the GPU, 0 on the host\n"), log.text.npos) << log.text;
  EXPECT_NE(log.text.find("  softmax    1\n"), log.text.npos) << log.text;
  EXPECT_NE(log.text.find("  transpose  1\n"), log.text.npos) << log.text;
}

TEST_F(DiagnosticsOnWebGpu, TraceFile) {
  const TempFolder folder;
  CompileOptions options = webgpu_options();
  options.trace_file = folder.path("trace.json");
  Executable exe = compile(logarithm(), options);
  exe.run({{"x", kGood}});
  exe.run({{"x", kGood}});
  const std::string text = read_whole_file(options.trace_file);
  EXPECT_TRUE(text.starts_with("[\n{\"name\": \"run\""));
  EXPECT_TRUE(text.ends_with("}}\n]\n"));
  const auto count = [&](std::string_view what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("\"name\": \"run\""), 2u);
  EXPECT_EQ(count("\"kernel\": \"webgpu/softmax\""), 4u);
  EXPECT_EQ(count("}},\n{"), count("\"ph\": ") - 1);
  EXPECT_EQ(count("]\n"), 1u);
}

TEST_F(DiagnosticsOnWebGpu, CommonDispatchRunsDefinitions) {
  Graph g;
  g.output(ops::fused_swiglu(g.input("x", {{4, 8}, DType::F32})), "y");
  CompileOptions options = webgpu_options();
  options.kernel_dispatch = KernelDispatch::kCommon;
  for (const StepInfo& s : compile(g, options).plan().steps) EXPECT_NE(s.op, "fused_swiglu");
}

TEST_F(DiagnosticsOnWebGpu, WhoseBytesAttentionWrites) {
  const Log log;
  Graph g;
  const Value x = ops::tanh(g.input("x", {{1, 2, 3, 4}, DType::F32}));
  g.output(ops::attention(x, x, x, {.num_heads = 2, .head_dim = 4}), "y");
  CompileOptions options = webgpu_options();
  compile(g, options);
  EXPECT_EQ(log.text, "");
  options.webgpu.attention_alias_report = true;
  compile(g, options);
  EXPECT_TRUE(log.text.starts_with("attention %")) << log.text;
  EXPECT_NE(log.text.find(" shares bytes with no operand\n"), log.text.npos) << log.text;
}

TEST_F(DiagnosticsOnWebGpu, SlicesOfABatchAreOneKernelOrSeveral) {
  Graph g;
  const Value x = g.input("x", {{4, 6}, DType::F32});
  const auto part = [&](int64_t i) { return ops::tanh(ops::narrow(x, {.axis = 0, .start = 2 * i, .len = 2})); };
  g.output(ops::concat(part(0), part(1), {.axis = 0}), "y");
  CompileOptions options = webgpu_options();
  const auto steps = [&] { return compile(g, options).plan().steps.size(); };
  EXPECT_EQ(steps(), 1u);
  options.batch_single_kernel = false;
  EXPECT_GT(steps(), 1u);
}

TEST_F(DiagnosticsOnWebGpu, AttentionBlocksUpToAThreshold) {
  Graph g;
  const Value x = g.input("x", {{1, 3, 4}, DType::F32}), mask = g.input("mask", {{1, 3}, DType::F32});
  const auto weight = [&](const char* name, Shape shape) { return g.param(name, {std::move(shape), DType::F32}); };
  const Value qkv = ops::matmul(x, weight("w", {4, 12})) + weight("b", {12});
  const auto part = [&](int64_t i) { return ops::narrow(qkv, {.axis = 2, .start = 4 * i, .len = 4}); };
  const Value attended = ops::attention(
      {part(0), part(1), part(2), mask},
      {.num_heads = 2, .head_dim = 2, .layout = ops::AttentionLayout::kBsf, .mask_kind = ops::MaskKind::kCustom});
  g.output(ops::matmul(attended, weight("o", {4, 4})) + weight("c", {4}), "y");
  Backend everything = choose_backend({.device = "cpu"});
  everything.claims = [](const OpDef&, const Attrs&, std::span<const TensorType>, std::span<const TensorType>,
                         const CompileOptions&) { return true; };
  const auto blocks = [&](int64_t rows) {
    CompileOptions options{.device = "cpu"};
    options.attention_block_rows = rows;
    int64_t n = 0;
    const OptimizedGraph optimized = optimize_for(everything, g, options);
    for (const Node& node : optimized.graph.nodes()) n += node.op == &ops::fused_attention_block;
    return n;
  };
  EXPECT_EQ(blocks(3), 1);
  EXPECT_EQ(blocks(2), 0);
}

}  // namespace rlx::test
