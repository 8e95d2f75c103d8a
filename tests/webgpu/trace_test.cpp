// Traced runs: an entry per step, with times, bytes and flops.
#include "rlx/ops.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

using TracesOnWebGpu = WebGpu;

static bool has_timestamps() {
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu") return d.adapters.at(0).uses_timestamps;
  return false;
}

TEST_F(TracesOnWebGpu, HaveAnEntryPerStep) {
  Graph g;
  const Value x = g.input("x", {{16, 64}, DType::F32}), w = g.param("w", {{64}, DType::F32});
  g.output(ops::softmax(ops::softmax(x) * ops::tanh(w)), "y");
  Executable exe = compile(g, webgpu_options());
  Rng rng(1);
  exe.set_param("w", rng.tensor({64}));
  const Tensor in = rng.tensor({16, 64});
  for (int run = 0; run < 2; ++run) {
    std::vector<StepTrace> trace;
    const int64_t submits = exe.stats().device.submits;
    const Tensor traced = exe.run({{"x", in}}, {.trace = &trace}).at("y");
    ASSERT_EQ(trace.size(), run == 0 ? 4u : 3u);
    // By the GPU's clock steps are timed without the host, which else waits for each.
    EXPECT_EQ(exe.stats().device.submits - submits, has_timestamps() ? 1 : static_cast<int64_t>(trace.size()) + 1);
    for (size_t i = 0; i < trace.size(); ++i) {
      EXPECT_GT(trace[i].begin_ns, 0);
      EXPECT_LE(trace[i].begin_ns, trace[i].end_ns);
      if (i > 0) {
        EXPECT_LE(trace[i - 1].begin_ns, trace[i].begin_ns);
      }
      EXPECT_GT(trace[i].bytes, 0);
      EXPECT_GT(trace[i].flops, 0);
      EXPECT_EQ(trace[i].once, run == 0 && i == 0);
    }
    EXPECT_EQ(trace.back().step.op, "softmax");
    EXPECT_EQ(trace.back().step.kernel, "webgpu/softmax");
    EXPECT_EQ(trace.back().bytes, 2 * 16 * 64 * 4);
    EXPECT_EQ(traced, exe.run({{"x", in}}).at("y"));
  }
}

// Behind the loop's entry, and within its time.
TEST_F(TracesOnWebGpu, HaveTheStepsOfLoops) {
  const TensorType row{{64}, DType::F32}, number{{}, DType::I32};
  auto cond = std::make_shared<Graph>("cond"), body = std::make_shared<Graph>("body");
  cond->input("x", row);
  cond->output(ops::lt(cond->input("i", number), cond->constant(Tensor::i32({}, {3}))), "go");
  body->output(ops::softmax(body->input("x", row)), "x");
  body->output(body->input("i", number) + body->constant(Tensor::i32({}, {1})), "i");
  Graph g;
  const Value x = g.input("x", row), i = g.input("i", number);
  g.output(ops::tanh(ops::while_(Values{ops::exp(x), i}, {.cond = cond, .body = body})), "y");
  CompileOptions options = webgpu_options();
  options.webgpu.min_loop_work = 0;
  options.skip_passes = {"lower_control_flow"};
  Executable exe = compile(g, options);
  const NamedTensors in = {{"x", Rng(1).tensor({64})}, {"i", Tensor::i32({}, {0})}};
  std::vector<StepTrace> trace;
  const Tensor y = exe.run(in, {.trace = &trace}).at("y");
  std::string names;
  for (const StepTrace& t : trace) names += t.step.op + " ";
  const std::string once = "lt softmax add ";
  EXPECT_EQ(names, "exp while " + once + once + once + "lt tanh ");
  for (size_t s = 2; s < trace.size() - 1; ++s) {
    EXPECT_GE(trace[s].begin_ns, trace[1].begin_ns) << s;
    EXPECT_LE(trace[s].end_ns, trace[1].end_ns) << s;
    EXPECT_GT(trace[s].bytes, 0) << s;
  }
  const int64_t submits = exe.stats().device.submits;
  EXPECT_EQ(exe.run(in).at("y"), y);
  EXPECT_EQ(exe.stats().device.submits - submits, 4 + 1);
}

// More timestamps than the bytes that the next run reads back: it leaves them alone (the asan preset sees it).
TEST_F(TracesOnWebGpu, LeaveNothingForRunsWithoutOne) {
  Graph g;
  Value y = g.input("x", {{4}, DType::F32});
  for (int i = 0; i < 40; ++i) y = ops::softmax(y);
  g.output(y, "y");
  CompileOptions options = webgpu_options();
  options.webgpu.check_indices = false;
  Executable exe = compile(g, options);
  const NamedTensors in = {{"x", Tensor::f32({4}, {1, 2, 3, 4})}};
  std::vector<StepTrace> trace;
  const Tensor traced = exe.run(in, {.trace = &trace}).at("y");
  EXPECT_EQ(trace.size(), 40u);
  EXPECT_EQ(exe.run(in).at("y"), traced);
  EXPECT_EQ(trace.size(), 40u);
}

}  // namespace rlx::test
