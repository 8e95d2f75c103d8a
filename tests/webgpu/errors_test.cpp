// Whatever fails is an rlx::Error, and the process lives (spec 40, 1).
#include <algorithm>

#include "backends/webgpu/device.h"
#include "rlx/custom_op.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random.h"
#include "support/tolerance.h"
#include "webgpu_test.h"

namespace rlx::test {

using ErrorsOnWebGpu = WebGpu;

static Graph squares() {
  Graph g;
  const Value x = g.input("x", {{3}, DType::F32});
  g.output(x * x, "y");
  return g;
}

TEST_F(ErrorsOnWebGpu, ALostDeviceIsAnErrorAndANewOneIsMade) {
  const NamedTensors inputs = {{"x", Tensor::f32({3}, {1, 2, 3})}};
  Executable exe = compile(squares(), webgpu_options());
  EXPECT_EQ(exe.run(inputs).at("y"), Tensor::f32({3}, {1, 4, 9}));
  webgpu::Device::open(webgpu_options().webgpu)->destroy();
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");  // and stays so
  Executable again = compile(squares(), webgpu_options());
  EXPECT_EQ(again.run(inputs).at("y"), Tensor::f32({3}, {1, 4, 9}));
}

// Programs for other sizes would take over its weights and states.
TEST_F(ErrorsOnWebGpu, ALostDeviceIsAnErrorAtNewSizesToo) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(symbols::kBatch), 3}, DType::F32}), w = g.param("w", {{3}, DType::F32});
  g.output(x * w, "y");
  const auto row = [](int64_t rows) { return NamedTensors{{"x", Tensor(DType::F32, {rows, 3})}}; };
  CompileOptions options = webgpu_options();
  options.kept_programs = 2;
  Executable exe = compile(g, options);
  exe.set_param("w", Tensor(DType::F32, {3}));
  for (const int64_t rows : {1, 2}) EXPECT_NO_THROW(exe.run(row(rows)));
  webgpu::Device::open(options.webgpu)->destroy();
  for (const int64_t rows : {3, 2, 1, 4}) EXPECT_ERROR(exe.run(row(rows)), kUnavailable, "The GPU device is lost");
  Executable again = exe.clone();
  EXPECT_NO_THROW(again.run(row(3)));
}

// A step on the host takes the device away, when what is before it has run and what is behind it has not.
TEST_F(ErrorsOnWebGpu, ADeviceThatIsLostInARunIsAnErrorWithTheStep) {
  register_custom_op({"test.lose_device", 1,
                      [](const InferCall& call, std::span<const uint8_t>) -> Types { return {call.input(0)}; }});
  bool lose = false;
  register_custom_kernel("test.lose_device", "reference", [&](const CustomCall& call) {
    std::ranges::copy(call.inputs[0].values<const float>(), call.outputs[0].values<float>().begin());
    if (lose) webgpu::Device::open(webgpu_options().webgpu)->destroy();
  });
  Graph g;
  const Value x = g.input("x", {{3}, DType::F32});
  g.output(ops::tanh(custom_op("test.lose_device", Values{x * x})), "y");
  const NamedTensors inputs = {{"x", Tensor::f32({3}, {0, 0, 0})}};
  Executable exe = compile(g, webgpu_options());
  EXPECT_EQ(exe.run(inputs).at("y"), Tensor::f32({3}, {0, 0, 0}));
  EXPECT_EQ(exe.stats().device.host_steps, 1);
  lose = true;
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");
  lose = false;
  EXPECT_ERROR(exe.run(inputs), kUnavailable, "The GPU device is lost");
  Executable again = compile(g, webgpu_options());
  lose = true;
  EXPECT_ERROR(again.run(inputs), kUnavailable, "while running %2 (test_lose_device_host)");
  lose = false;
  EXPECT_EQ(compile(g, webgpu_options()).run(inputs).at("y"), Tensor::f32({3}, {0, 0, 0}));
}

TEST_F(ErrorsOnWebGpu, HostStepsAreErrorsWhereTheyAreNotWanted) {
  Graph g;
  const Value x = g.input("x", {{2, 2}, DType::F32});
  g.output(ops::det(ops::tanh(x)), "y");
  CompileOptions options = webgpu_options();
  EXPECT_NO_THROW(compile(g, options));
  options.webgpu.no_host_steps = true;
  EXPECT_ERROR(compile(g, options), kUnsupported,
               "(det of [2, 2] f32 to [] f32), and no_host_steps is set: without it ");
  Graph wide;
  wide.output(ops::tanh(wide.input("x", {{5}, DType::F64})), "y");
  EXPECT_ERROR(compile(wide, options), kUnsupported, "(tanh of [5] f64 to [5] f64)");
  EXPECT_NO_THROW(compile(squares(), options));
}

TEST_F(ErrorsOnWebGpu, OneSentenceForWhatIsNotThere) {
  CompileOptions options = webgpu_options();
  options.webgpu.library = "/nowhere/libwebgpu.so";
  EXPECT_ERROR(compile(squares(), options), kUnavailable,
               "Device 'webgpu' is not available: There is no WebGPU library");
  options = webgpu_options();
  options.device = "webgpu:no such card";
  EXPECT_ERROR(compile(squares(), options), kUnavailable, "There is no WebGPU adapter 'no such card'; there are: 0 '");
  options.device = "webgpu:99";
  EXPECT_ERROR(compile(squares(), options), kUnavailable, "There is no WebGPU adapter '99'; there are: 0 '");
  // Said before the compiler starts, which knows no reason either; auto does without.
  options = webgpu_options();
  options.webgpu.adapter = "no such card";
  EXPECT_ERROR(compile(squares(), options), kUnavailable,
               "Device 'webgpu' is not available: There is no WebGPU adapter 'no such card'; there are: 0 '");
  options.device = "auto";
  EXPECT_EQ(compile(squares(), options).device(), "cpu");
}

TEST_F(ErrorsOnWebGpu, ValuesThatDoNotFitABufferOrABinding) {
  Graph g;
  const Value x = g.input("x", {{64, 64}, DType::F32});
  const Value y = ops::narrow(x * x, {.axis = 1, .len = 16});
  g.output(ops::tanh(y), "y");
  Rng rng(1);
  const NamedTensors inputs = {{"x", rng.tensor({64, 64})}};
  const Tensor expected = compile(g, {.device = "reference"}).run(inputs).at("y");
  for (const int64_t buffer : {0, 8192}) {  // the host computes them
    CompileOptions options = webgpu_options();
    options.webgpu.max_binding_bytes = 8192;
    options.webgpu.max_buffer_bytes = buffer;
    Executable exe = compile(g, options);
    EXPECT_TRUE(near(exe.run(inputs).at("y"), expected, kTranscendental));
    EXPECT_EQ(exe.stats().device.dispatches, 1);
    options.webgpu.no_host_steps = true;
    EXPECT_ERROR(compile(g, options), kUnsupported, "No kernel of the GPU runs");
  }
}

// What a result without elements is a part of need not be on the device for it.
TEST_F(ErrorsOnWebGpu, AnEmptyPartOfWhatNoBufferHolds) {
  Graph g;
  const Value x = g.input("x", {{6, 40}, DType::F16}), w = g.input("w", {{40, 64}, DType::F16});
  const Value first = ops::fused_matmul_split(x, w, g.input("b", {{64}, DType::F16}), {.widths = {0, 60, 4}});
  for (int64_t i = 0; i < 3; ++i) g.output(first.result(i), str("y", i));
  Rng rng(1);
  const NamedTensors inputs = {{"x", rng.tensor({6, 40}, DType::F16)},
                               {"w", rng.tensor({40, 64}, DType::F16)},
                               {"b", rng.tensor({64}, DType::F16)}};
  CompileOptions options = webgpu_options(true);
  options.webgpu.max_binding_bytes = options.webgpu.max_buffer_bytes = 1024;
  const NamedTensors expected = compile(g, {.device = "reference"}).run(inputs),
                     actual = compile(g, options).run(inputs);
  for (const char* name : {"y0", "y1", "y2"}) EXPECT_TRUE(near(actual.at(name), expected.at(name), kHalf)) << name;
}

// What the types of a node do not tell: bytes that kernels read as words, what a kernel keeps beside its operands, a
// small part of a value that no buffer holds.
TEST_F(ErrorsOnWebGpu, WhatKernelsSeeOfSmallValuesMayBeTooLarge) {
  Graph bytes, sums, part;
  const Value x = bytes.input("x", {{3, 200}, DType::U8}), y = bytes.input("y", {{3, 1}, DType::U8});
  bytes.output(ops::bit_xor(ops::bit_and(x, y), x), "y");
  const Value at = sums.input("x", {{150}, DType::I32});
  sums.output(ops::scatter_add(sums.input("y", {{150, 1}, DType::F32}), at, {.rows = 150}), "y");
  const Value all = ops::det(part.input("x", {{600, 2, 2}, DType::F32})), some = part.input("y", {{2}, DType::F32});
  part.output(ops::tanh(ops::narrow(all, {.axis = 0, .start = 300, .len = 2})) + some, "y");
  Rng rng(1);
  for (const Graph* g : {&bytes, &sums, &part}) {
    SCOPED_TRACE(print(*g));
    NamedTensors inputs;
    for (const Port& p : compile(*g, {.device = "reference"}).inputs()) {
      const std::vector<int64_t> sizes = p.type.shape.sizes();
      inputs[p.name] = is_float(p.type.dtype) ? rng.tensor(sizes) : rng.integers(sizes, 0, 100, p.type.dtype);
    }
    const Tensor expected = compile(*g, {.device = "reference"}).run(inputs).at("y");
    for (const int64_t limit : {1024, 65536}) {
      CompileOptions options = webgpu_options(true);
      options.webgpu.max_binding_bytes = options.webgpu.max_buffer_bytes = limit;
      Executable exe = compile(*g, options);
      EXPECT_TRUE(near(exe.run(inputs).at("y"), expected, kTranscendental)) << limit;
      EXPECT_EQ(exe.stats().device.host_steps > (g == &part ? 1 : 0), limit == 1024) << limit;
    }
  }
}

}  // namespace rlx::test
