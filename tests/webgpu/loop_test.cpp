// Control flow whose regions run on the device (spec 40, 5.7).
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

CompileOptions device_loops(bool poison = false) {
  CompileOptions options = webgpu_options(poison);
  options.webgpu.min_loop_work = 0;
  options.skip_passes = {"lower_control_flow"};
  return options;
}

GraphPtr region(const std::function<void(Graph&)>& build) {
  auto g = std::make_shared<Graph>("region");
  build(*g);
  return g;
}

void compare(const Graph& g, const NamedTensors& inputs, const NamedTensors& params, const CompileOptions& options,
             DeviceStats* stats = nullptr) {
  Executable device = compile(g, options), oracle = compile(g, {.device = "reference"});
  for (Executable* exe : {&device, &oracle})
    for (const auto& [name, value] : params) exe->set_param(name, value);
  for (int run = 0; run < 2; ++run) {
    const NamedTensors actual = device.run(inputs), expected = oracle.run(inputs);
    EXPECT_EQ(device.stats().device.host_steps, 0);
    for (const auto& [name, value] : expected) EXPECT_TRUE(near(actual.at(name), value, kTranscendental)) << name;
  }
  if (stats) *stats = device.stats().device;
}

// x = softmax(x * w) until n reaches the limit; unused is carried along.
Graph power(int64_t limit) {
  const TensorType matrix{{4, 8}, DType::F32}, number{{}, DType::I32};
  Graph g;
  const Value x = g.input("x", matrix), n = g.input("n", number), unused = g.input("unused", matrix);
  const GraphPtr cond = region([&](Graph& c) {
    c.input("x", matrix);
    const Value i = c.input("n", number);
    c.input("unused", matrix);
    c.output(ops::lt(i, c.constant(Tensor::i32({}, {static_cast<int32_t>(limit)}))), "go");
  });
  const GraphPtr body = region([&](Graph& b) {
    const Value y = b.input("x", matrix), i = b.input("n", number), u = b.input("unused", matrix);
    b.output(ops::softmax(y * b.param("w", {{8}, DType::F32})), "x");
    b.output(i + b.constant(Tensor::i32({}, {1})), "n");
    b.output(u, "unused");
  });
  const Value first = ops::while_(Values{ops::tanh(x), n, unused}, {.cond = cond, .body = body});
  g.output(ops::neg(first), "y");
  g.output(first.result(1), "count");
  g.output(first.result(2), "same");
  return g;
}

}  // namespace

using LoopsOnWebGpu = WebGpu;

TEST_F(LoopsOnWebGpu, AWhileReadsBackItsPredicateAlone) {
  Rng rng(1);
  const Tensor x = rng.tensor({4, 8}), u = rng.tensor({4, 8}), w = rng.tensor({8});
  for (const bool poison : {false, true}) {
    DeviceStats stats;
    compare(power(5), {{"x", x}, {"n", Tensor::i32({}, {0})}, {"unused", u}}, {{"w", w}}, device_loops(poison), &stats);
    if (poison) continue;
    // Two runs of six predicates and the outputs; each predicate ends a submission.
    EXPECT_EQ(stats.bytes_down, 2 * (6 * 4 + 128 + 4 + 128));
    EXPECT_EQ(stats.submits, 2 * 7);
  }
  // No iteration at all.
  compare(power(5), {{"x", x}, {"n", Tensor::i32({}, {9})}, {"unused", u}}, {{"w", w}}, device_loops());
}

TEST_F(LoopsOnWebGpu, AnIfRunsOneBranch) {
  const TensorType type{{3, 4}, DType::F32};
  Graph g;
  const Value p = g.input("p", {{}, DType::Bool}), x = g.input("x", type), y = g.input("y", {{5}, DType::U8});
  const auto branch = [&](bool first) {
    return region([&](Graph& b) {
      const Value v = b.input("x", type), bytes = b.input("y", {{5}, DType::U8});
      b.output(first ? ops::softmax(v) : ops::exp(v), "a");
      b.output(first ? v : b.constant(Tensor::f32({3, 4}, std::vector<float>(12, 7))), "b");
      b.output(bytes, "c");
    });
  };
  const Value r = ops::if_(Values{p, x, y}, {.then_branch = branch(true), .else_branch = branch(false)});
  g.output(r, "a");
  g.output(r.result(1) + x, "b");
  g.output(r.result(2), "c");
  Rng rng(2);
  for (const uint8_t which : {0, 1})
    compare(g,
            {{"p", Tensor::of<uint8_t>(DType::Bool, {}, std::vector<uint8_t>{which})},
             {"x", rng.tensor({3, 4})},
             {"y", rng.tensor({5}, DType::U8)}},
            {}, device_loops(true));
}

TEST_F(LoopsOnWebGpu, AScanStacksRowsWithoutReadingAnyBack) {
  Rng rng(3);
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{70}}) {
    const TensorType carry{{6}, DType::F32};
    const GraphPtr body = region([&](Graph& b) {
      const Value c = b.input("c", carry), k = b.input("k", carry), x = b.input("x", carry);
      const Value next = ops::tanh(c * k + x);
      b.output(next, "c");
      b.output(next + x, "y");
    });
    Graph g;
    const Value c = g.input("c", carry), k = g.input("k", carry), xs = g.input("xs", {{length, 6}, DType::F32});
    const Value r = ops::scan(Values{c, k, xs}, {.body = body,
                                                 .length = length,
                                                 .num_carries = 1,
                                                 .num_bcast = 1,
                                                 .num_xs = 1,
                                                 .save_trajectory = true,
                                                 .num_checkpoints = length > 1 ? 4 : 0});
    g.output(r, "last");
    g.output(r.result(1), "ys");
    g.output(r.result(2), "kept");
    DeviceStats stats;
    compare(g, {{"c", rng.tensor({6})}, {"k", rng.tensor({6})}, {"xs", rng.tensor({length, 6})}}, {}, device_loops(),
            &stats);
    EXPECT_EQ(stats.submits, 2 * (length / 64 + 1));
  }
}

// A bound that does not fit the device's integers is as good as the largest that does; a number that is more is not.
TEST_F(LoopsOnWebGpu, OnlyBoundsMayBeLarge) {
  const TensorType number{{}, DType::I64}, row{{64}, DType::F32};
  for (const bool is_added : {false, true}) {
    Graph g;
    const Value i = g.input("i", number), n = g.input("n", number), x = g.input("x", row);
    const GraphPtr cond = region([&](Graph& c) {
      const Value at = c.input("i", number), end = c.input("n", number), v = c.input("x", row);
      const Value small =
          ops::lt(ops::reduce_max(v, {.axes = {0}, .keep_dim = false}), c.constant(Tensor::f32({}, {3})));
      c.output(ops::where(ops::lt(at, end), small, c.constant(Tensor(DType::Bool, {}))), "go");
    });
    const GraphPtr body = region([&](Graph& b) {
      const Value at = b.input("i", number), end = b.input("n", number), v = b.input("x", row);
      b.output(is_added ? at + end : at + b.constant(Tensor::i64({}, {1})), "i");
      b.output(end, "n");
      b.output(v + b.constant(Tensor::f32({}, {1})), "x");
    });
    g.output(ops::while_(Values{i, n, x}, {.cond = cond, .body = body}).result(2), "y");
    const NamedTensors in = {
        {"i", Tensor::i64({}, {0})}, {"n", Tensor::i64({}, {int64_t{1} << 40})}, {"x", Tensor(DType::F32, {64})}};
    if (!is_added) {
      compare(g, in, {}, device_loops(true));
      continue;
    }
    Executable exe = compile(g, device_loops());
    EXPECT_TRUE(throws_error([&] { exe.run(in); }, ErrorKind::kUnsupported,
                             "Value 1099511627776 of input 'n' ([] i64) does not fit the 32 bits"));
  }
}

TEST_F(LoopsOnWebGpu, SmallRegionsRunOnTheHost) {
  CompileOptions options = device_loops();
  options.webgpu.min_loop_work = 1 << 20;
  Executable exe = compile(power(2), options);
  exe.set_param("w", Tensor(DType::F32, {8}));
  exe.run({{"x", Tensor(DType::F32, {4, 8})}, {"n", Tensor::i32({}, {0})}, {"unused", Tensor(DType::F32, {4, 8})}});
  EXPECT_EQ(exe.stats().device.host_steps, 1);
}

}  // namespace rlx::test
