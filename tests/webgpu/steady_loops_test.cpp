// Loops that the host drives, and steps that it runs between those of the GPU, make nothing in a steady run.
#include <cstring>

#include "backends/reference/evaluate.h"
#include "rlx/custom_op.h"
#include "support/allocations.h"
#include "support/expect_error.h"
#include "support/loop_graphs.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

// Loops run on the device, or as steps of the host.
CompileOptions gpu_options(bool on_device) {
  CompileOptions options = with_loops("webgpu");
  options.webgpu.min_loop_work = on_device ? 0 : 1 << 30;
  return options;
}

Tensor count(int32_t n) { return Tensor::i32({}, {n}); }

// Runs with two sets of inputs in turn, of which some may be on the host and some on the device.
void expect_steady(Executable& exe, const std::vector<Tensor>& inputs, const std::vector<Tensor>& others) {
  for (const auto* in : {&inputs, &others, &inputs, &others}) exe.run_slots(*in);
  const DeviceStats stats = exe.stats().device;
  const auto before = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(i % 2 == 0 ? inputs : others);
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(exe.stats().device.buffers, stats.buffers);
  EXPECT_EQ(exe.stats().device.pipelines, stats.pipelines);
  EXPECT_EQ(exe.stats().device.parameter_writes, stats.parameter_writes);
}

void expect_results(Executable& exe, const Graph& g, const std::vector<Tensor>& inputs, const NamedTensors& params) {
  const std::vector<Tensor> expected = reference::evaluate(g, inputs, params);
  const std::span<const Tensor> actual = exe.run_slots(inputs);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(near(actual[i], expected[i], kTranscendental)) << i;
}

void expect_steady(const Graph& g, const CompileOptions& options, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& others, const NamedTensors& params = {}) {
  Executable exe = compile(g, options);
  for (const auto& [name, value] : params) exe.set_param(name, value);
  expect_steady(exe, inputs, others);
  expect_results(exe, g, inputs, params);
  expect_results(exe, g, others, params);
}

}  // namespace

using SteadyRunOnWebGpu = WebGpu;

TEST_F(SteadyRunOnWebGpu, LoopsMakeNothing) {
  Rng rng(1);
  const auto row = [&] { return rng.tensor({64}); };
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    const CompileOptions options = gpu_options(on_device);
    const NamedTensors params = {{"table", rng.tensor({7, 64})}};
    expect_steady(while_graph(), options, {row(), row(), count(0), count(0)}, {row(), row(), count(5), count(-2)},
                  params);
    expect_steady(while_graph(), options, {row(), row(), count(3), count(0)}, {row(), row(), count(8), count(0)},
                  params);
    for (const bool computed : {false, true})
      expect_steady(if_graph(computed), options, {count(1), row()}, {count(0), row()});
    expect_steady(scan_graph(), options, {row(), row(), rng.tensor({9, 64})}, {row(), row(), rng.tensor({9, 64})});
    Executable exe = compile(scan_graph(), options);
    exe.run_slots(std::vector<Tensor>{row(), row(), rng.tensor({9, 64})});
    EXPECT_EQ(exe.stats().device.host_steps, on_device ? 0 : 1);
  }
}

// Steps in F64, solvers and a custom op run on the host, with operands of the device, of the host, parts of them, one
// of them twice, and one without elements.
TEST_F(SteadyRunOnWebGpu, HostStepsMakeNothing) {
  register_custom_op({"test.steady_sum_of_four", 4, [](const InferCall& call, auto) { return Types{call.input(0)}; }});
  register_custom_kernel("test.steady_sum_of_four", "reference", [](const CustomCall& call) {
    const auto out = call.outputs[0].values<float>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = 0;
      for (const CustomView& in : call.inputs.first(3)) out[i] += in.values<const float>()[i];
    }
  });
  Graph g;
  const TensorType row{{6}, DType::F32};
  const Value x = g.input("x", row), y = g.input("y", {{8}, DType::F32}), w = g.param("w", row);
  const Value e = g.input("e", {{0}, DType::F32});
  const Value on_device = ops::tanh(x * w), part = ops::narrow(y, {.axis = 0, .start = 1, .len = 6});
  const Value sum = custom_op("test.steady_sum_of_four", {{on_device, on_device, part, e}});
  const Value matrix =
      ops::reshape(ops::narrow(on_device + sum, {.axis = 0, .start = 0, .len = 4}), {.new_shape = {2, 2}});
  const Value solved = ops::dense_solve(matrix, ops::narrow(y, {.axis = 0, .start = 0, .len = 2}));
  g.output(solved * ops::det(matrix), "solved");
  const Value wide = ops::cast(sum + x, {.to = DType::F64});
  const Value s = g.state("s", row);
  g.update(s, sum);
  g.output(ops::cast(wide + wide, {.to = DType::F32}) * s, "z");
  g.output(sum, "sum");
  Rng rng(2);
  const Tensor weight = rng.tensor({6}), none(DType::F32, {0});
  std::vector<std::byte> memory(6 * 4 + 1);
  std::memcpy(memory.data() + 1, rng.tensor({6}).bytes().data(), 24);
  const Tensor odd = Tensor::borrow(DType::F32, {6}, std::span(memory).subspan(1));  // no address of an f32
  const std::vector<Tensor> inputs = {rng.tensor({6}), rng.tensor({8}), none}, others = {odd, rng.tensor({8}), none};
  Executable exe = compile(g, gpu_options(true));
  exe.set_param("w", weight);
  expect_steady(exe, inputs, others);
  EXPECT_GT(exe.stats().device.host_steps, 0);
  exe.reset_states();
  Executable oracle = compile(g, {.device = "reference"});
  oracle.set_param("w", weight);
  for (const auto* in : {&inputs, &others, &inputs}) {
    const std::span<const Tensor> actual = exe.run_slots(*in), expected = oracle.run_slots(*in);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(near(actual[i], expected[i], kTranscendental)) << i;
  }
}

// A result of the host feeds an input: a run by name allocates what it does without.
TEST_F(SteadyRunOnWebGpu, FedInputsThroughTheHostMakeNothing) {
  std::optional<int64_t> by_name;
  for (const DType d : {DType::F32, DType::F64}) {
    Graph g;
    const Value x = g.input("x", {{6}, DType::F32});
    const Value next = ops::cast(x, {.to = d}) + g.constant(Tensor::from_doubles(d, {}, {{1.0}}));
    g.output(ops::cast(next, {.to = DType::F32}), "next");
    Executable exe = compile(g, {.device = "webgpu"});
    exe.bind_handle("x", Tensor(DType::F32, {6}));
    exe.feed("next", "x");
    for (int i = 0; i < 4; ++i) exe.run({});
    const auto before = allocations();
    exe.run({});
    if (d == DType::F32)
      by_name = before ? std::optional(*allocations() - *before) : std::nullopt;
    else
      EXPECT_EQ(before ? std::optional(*allocations() - *before) : std::nullopt, by_name);
    EXPECT_EQ(exe.read_handle("x"), Tensor::f32({6}, std::vector<float>(6, 5)));
  }
}

// A number that counts iterations is of 64 bits.
TEST_F(SteadyRunOnWebGpu, NumbersOfIterationsMakeNothing) {
  const TensorType number{{}, DType::I64};
  Graph g;
  const Value n = g.input("n", number), v = g.input("v", kLoopRow);
  const GraphPtr cond = region([&](Graph& c) {
    const Value at = c.input("i", number), end = c.input("n", number);
    c.input("v", kLoopRow);
    c.output(ops::lt(at, end), "go");
  });
  const GraphPtr body = region([&](Graph& b) {
    const Value at = b.input("i", number), end = b.input("n", number), u = b.input("v", kLoopRow);
    b.output(at + b.constant(Tensor::i64({}, {1})), "i");
    b.output(end, "n");
    b.output(u + u, "v");
  });
  const Value w = ops::while_(Values{g.constant(Tensor::i64({}, {0})), n, v}, {.cond = cond, .body = body});
  g.output(w.result(2), "v");
  Rng rng(3);
  expect_steady(g, gpu_options(true), {Tensor::i64({}, {3}), rng.tensor({64})},
                {Tensor::i64({}, {-(int64_t{1} << 40)}), rng.tensor({64})});
}

// A step of the host fails in the middle of a run, in a loop or before anything that was encoded has run.
TEST_F(SteadyRunOnWebGpu, AnErrorOfTheHostLeavesTheExecutableUsable) {
  Rng rng(4);
  Graph g = while_graph();
  const Value u = g.param("u", {{64, 64}, DType::F32}), b = g.value(g.find_leaf(ops::input, "b")->results[0].id);
  g.output(ops::matmul(ops::reshape(b, {.new_shape = {1, 64}}), ops::tanh(u)), "product");
  const NamedTensors params = {{"table", rng.tensor({7, 64})}, {"u", rng.tensor({64, 64})}};
  const std::vector<Tensor> good = {rng.tensor({64}), rng.tensor({64}), count(0), count(0)};
  std::vector<Tensor> bad = good;
  bad[3] = count(3);  // after four iterations there is no row
  for (const bool fails_first : {true, false}) {
    Executable exe = compile(g, gpu_options(false));
    for (const auto& [name, value] : params) exe.set_param(name, value);
    if (!fails_first) expect_results(exe, g, good, params);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(throws_error([&] { exe.run_slots(bad); }, ErrorKind::kRuntime, "out of range"));
      expect_results(exe, g, good, params);
    }
    const auto before = allocations();
    exe.run_slots(good);
    EXPECT_EQ(allocations(), before);
  }
}

// What is computed of weights was encoded, and had not run.
TEST_F(SteadyRunOnWebGpu, AnErrorOfTheHostInTheFirstRunLosesNoWeights) {
  register_custom_op({"test.no_negative", 1, [](const InferCall& call, auto) { return Types{call.input(0)}; }});
  register_custom_kernel("test.no_negative", "reference", [](const CustomCall& call) {
    const auto x = call.inputs[0].values<const float>();
    if (x[0] < 0) fail(ErrorKind::kRuntime, "It is negative.");
    std::copy(x.begin(), x.end(), call.outputs[0].values<float>().begin());
  });
  Graph g;
  const Value x = g.input("x", kLoopRow), w = g.param("w", kLoopRow);
  g.output(custom_op("test.no_negative", {{x}}) * ops::tanh(w), "y");
  Rng rng(5);
  const NamedTensors params = {{"w", rng.tensor({64})}};
  const Tensor good = Tensor::f32({64}, std::vector<float>(64, 2)), bad = Tensor::f32({64}, std::vector<float>(64, -2));
  Executable exe = compile(g, {.device = "webgpu"});
  exe.set_param("w", params.at("w"));
  EXPECT_TRUE(throws_error([&] { exe.run_slots({{bad}}); }, ErrorKind::kRuntime, "It is negative."));
  expect_results(exe, g, {good}, params);
}

}  // namespace rlx::test
