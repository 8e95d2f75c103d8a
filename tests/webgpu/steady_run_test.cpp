// What a run asks of the device: one submission, nothing made or written twice (spec 40, 5).
#include "rlx/ops.h"
#include "support/allocations.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

DeviceStats operator-(DeviceStats a, const DeviceStats& b) {
  a.submits -= b.submits;
  a.dispatches -= b.dispatches;
  a.host_steps -= b.host_steps;
  a.bytes_up -= b.bytes_up;
  a.bytes_down -= b.bytes_down;
  a.parameter_writes -= b.parameter_writes;
  a.pipelines -= b.pipelines;
  a.buffers -= b.buffers;
  return a;
}

// Three dispatches, a state that is updated with a copy, two outputs.
Graph three_steps() {
  Graph g;
  const Value x = g.input("x", {{4, 8}, DType::F32}), w = g.param("w", {{8}, DType::F32});
  const Value s = g.state("s", {{4, 8}, DType::F32});
  const Value y = ops::softmax(x * w + s), z = ops::softmax(y, {.axis = 0});
  g.update(s, y);
  g.output(y, "y");
  g.output(z, "z");
  g.output(s, "old");
  return g;
}

}  // namespace

using SteadyRunOnWebGpu = WebGpu;

TEST_F(SteadyRunOnWebGpu, IsOneSubmissionThatMakesNothing) {
  Executable exe = compile(three_steps(), {.device = "webgpu"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const std::vector<Tensor> inputs = {rng.tensor({4, 8})}, others = {rng.tensor({4, 8})};
  exe.run_slots(inputs);
  exe.run_slots(others);
  const DeviceStats before = exe.stats().device;
  EXPECT_GT(before.pipelines, 0);
  EXPECT_GT(before.buffers, 0);
  EXPECT_EQ(before.parameter_writes, 1);
  const auto allocated = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(i % 2 == 0 ? inputs : others);
  EXPECT_EQ(allocations(), allocated);
  const DeviceStats ten = exe.stats().device - before;
  EXPECT_EQ(ten.submits, 10);
  EXPECT_EQ(ten.dispatches, 30);
  EXPECT_EQ(ten.host_steps, 0);
  EXPECT_EQ(ten.parameter_writes, 0);
  EXPECT_EQ(ten.pipelines, 0);
  EXPECT_EQ(ten.buffers, 0);
  EXPECT_EQ(ten.bytes_up, 10 * 4 * 8 * 4);
  EXPECT_EQ(ten.bytes_down, 10 * 3 * 4 * 8 * 4);
}

// Of values that no kernel touches, and of dtypes that are converted on their way.
TEST_F(SteadyRunOnWebGpu, AllocatesNothingForWhatTheHostHas) {
  Graph g;
  const Value x = g.input("x", {{6}, DType::F32}), ids = g.input("ids", {{2, 3}, DType::I64});
  const Value mask = g.input("mask", {{2, 3}, DType::Bool}), s = g.state("s", {{4}, DType::F32});
  g.output(x, "same");
  g.output(ops::narrow(x, {.axis = 0, .start = 1, .len = 4}), "part");
  g.output(g.constant(Tensor::f32({2}, {1, 2})), "constant");
  g.output(s, "state");
  const Value late = g.state("late", {{6}, DType::F32}), later = g.state("later", {{6}, DType::F32});
  g.update(late, x);
  g.update(later, late);
  g.output(ops::where(mask, ids, ids + ids), "y");
  Executable exe = compile(g, {.device = "webgpu"});
  const std::vector<Tensor> inputs = {Tensor::f32({6}, {1, 2, 3, 4, 5, 6}), Tensor::i64({2, 3}, {1, 2, 3, 4, 5, 6}),
                                      Tensor::i32({2, 3}, {1, 0, 1, 0, 1, 0}).cast(DType::Bool)};
  std::vector<Tensor> others;
  for (size_t i = 0; i < inputs.size(); ++i)
    others.push_back(Tensor::from_doubles(inputs[i].dtype(), inputs[i].sizes(), std::vector<double>(6, 0.0)));
  exe.run_slots(inputs);
  exe.run_slots(others);
  const auto allocated = allocations();
  for (int i = 0; i < 10; ++i) exe.run_slots(i % 2 == 0 ? others : inputs);
  EXPECT_EQ(allocations(), allocated);
  const auto results = exe.run_slots(inputs);
  EXPECT_EQ(results[0], inputs[0]);
  EXPECT_EQ(results[1], Tensor::f32({4}, {2, 3, 4, 5}));
  EXPECT_EQ(results[2], Tensor::f32({2}, {1, 2}));
  EXPECT_EQ(results[3], Tensor::f32({4}, {0, 0, 0, 0}));
  EXPECT_EQ(results[4], Tensor::i64({2, 3}, {1, 4, 3, 8, 5, 12}));
  EXPECT_EQ(exe.read_state("late"), inputs[0]);
  EXPECT_EQ(exe.read_state("later"), inputs[0]);  // the run before was one with these inputs as well
  exe.run_slots(others);
  EXPECT_EQ(exe.read_state("late"), others[0]);
  EXPECT_EQ(exe.read_state("later"), inputs[0]);
}

TEST_F(SteadyRunOnWebGpu, UnchangedInputsStayOnTheDevice) {
  Executable exe = compile(three_steps(), {.device = "webgpu"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const Tensor x = rng.tensor({4, 8});
  exe.run({{"x", x}});
  DeviceStats before = exe.stats().device;
  exe.run({{"x", x.clone()}});  // other bytes of the same value
  EXPECT_EQ((exe.stats().device - before).bytes_up, 0);
  Tensor changed = x.clone();
  changed.mutable_values<float>()[31] += 1;
  exe.run({{"x", changed}});
  EXPECT_EQ((exe.stats().device - before).bytes_up, 4 * 8 * 4);

  CompileOptions forced{.device = "webgpu"};
  forced.webgpu.force_input_upload = true;
  Executable always = compile(three_steps(), forced);
  always.set_param("w", rng.tensor({8}));
  always.run({{"x", x}});
  before = always.stats().device;
  always.run({{"x", x}});
  EXPECT_EQ((always.stats().device - before).bytes_up, 4 * 8 * 4);
}

// Beyond what is compared byte by byte: a tensor stays where nobody can have written it.
TEST_F(SteadyRunOnWebGpu, LargeInputsThatNobodyCanWriteStayOnTheDevice) {
  Graph g;
  const Value x = g.input("x", {{32, 1024}, DType::F32});
  g.output(x + x, "y");
  constexpr int64_t kBytes = 32 * 1024 * 4;
  Executable exe = compile(g, {.device = "webgpu"});
  // Bytes that a run uploads, which gives what it should.
  const auto up = [&](Executable& e, const Tensor& in) {
    const int64_t before = e.stats().device.bytes_up;
    const Tensor y = e.run({{"x", in}}).at("y");
    for (const int64_t i : {int64_t{0}, in.num_elements() - 1}) EXPECT_EQ(y.at(i), 2 * in.at(i));
    return e.stats().device.bytes_up - before;
  };
  const std::vector<float> ones(32 * 1024, 1);
  Tensor in = Tensor::f32({32, 1024}, ones);
  EXPECT_EQ(up(exe, in), kBytes);
  EXPECT_EQ(up(exe, in), 0);
  const Tensor copy = in;
  EXPECT_EQ(up(exe, copy), 0);
  EXPECT_EQ(up(exe, in.clone()), kBytes);
  EXPECT_EQ(up(exe, in), kBytes);

  // A span for writing is out: every run may see other bytes.
  const std::span<float> values = in.mutable_values<float>();
  for (const float value : {2.f, 3.f}) {
    values[0] = value;
    EXPECT_EQ(up(exe, in), kBytes);
    values.back() = value;
    EXPECT_EQ(up(exe, copy), kBytes);
  }
  in.seal();
  EXPECT_EQ(up(exe, in), kBytes);
  EXPECT_EQ(up(exe, in), 0);

  std::vector<float> memory = ones;
  const Tensor borrowed = Tensor::borrow(DType::F32, {32, 1024}, std::as_bytes(std::span(memory)));
  for (const float value : {2.f, 3.f}) {
    memory[0] = value;
    EXPECT_EQ(up(exe, borrowed), kBytes);
  }

  // What a run returned, fed to another.
  Executable next = compile(g, {.device = "webgpu"});
  const Tensor result = exe.run({{"x", in}}).at("y");
  EXPECT_EQ(up(next, result), kBytes);
  EXPECT_EQ(up(next, result), 0);

  CompileOptions forced{.device = "webgpu"};
  forced.webgpu.force_input_upload = true;
  Executable always = compile(g, forced);
  EXPECT_EQ(up(always, in), kBytes);
  EXPECT_EQ(up(always, in), kBytes);
}

// A feed leaves other bytes in the input's place: the tensor that was there before has to come again.
TEST_F(SteadyRunOnWebGpu, AFedInputIsUploadedAgain) {
  Graph g;
  const Value x = g.input("x", {{32, 1024}, DType::F32});
  g.output(x + x, "y");
  Executable exe = compile(g, {.device = "webgpu"});
  const Tensor in = Tensor::f32({32, 1024}, std::vector<float>(32 * 1024, 1));
  exe.bind_handle("x", in);
  exe.feed("y", "x");
  EXPECT_EQ(exe.run({}).at("y").at(0), 2);
  EXPECT_EQ(exe.run({}).at("y").at(0), 4);
  EXPECT_EQ(exe.run({{"x", in}}).at("y").at(0), 2);
  EXPECT_EQ(exe.run({{"x", in}}).at("y").at(0), 2);
}

TEST_F(SteadyRunOnWebGpu, LargeHandlesAreUploadedOnce) {
  Graph g;
  const Value x = g.input("x", {{64, 1024}, DType::F32}), y = g.input("y", {{}, DType::F32});
  g.output(ops::softmax(x * y), "z");
  Executable exe = compile(g, {.device = "webgpu"});
  Rng rng(1);
  const Tensor table = rng.tensor({64, 1024}), other = rng.tensor({64, 1024});
  exe.bind_handle("x", table);
  exe.run({{"y", Tensor::f32({}, {1})}});
  const int64_t before = exe.stats().device.bytes_up;
  const Tensor two = exe.run({{"y", Tensor::f32({}, {2})}}).at("z");
  EXPECT_EQ(exe.stats().device.bytes_up - before, 4);
  // An input that is given wins, and the handle comes back afterwards.
  const Tensor given = exe.run({{"x", other}, {"y", Tensor::f32({}, {2})}}).at("z");
  EXPECT_FALSE(given == two);
  EXPECT_EQ(exe.run({{"y", Tensor::f32({}, {2})}}).at("z"), two);
  exe.bind_handle("x", other);
  EXPECT_EQ(exe.run({{"y", Tensor::f32({}, {2})}}).at("z"), given);
}

TEST_F(SteadyRunOnWebGpu, OnlyTheWantedOutputsComeBack) {
  Executable exe = compile(three_steps(), {.device = "webgpu"});
  Rng rng(1);
  exe.set_param("w", rng.tensor({8}));
  const Tensor x = rng.tensor({4, 8});
  const NamedTensors all = exe.run({{"x", x}});
  exe.reset_states();
  const int64_t before = exe.stats().device.bytes_down;
  const NamedTensors one = exe.run({{"x", x}}, {.outputs = {"z"}});
  EXPECT_EQ(exe.stats().device.bytes_down - before, 4 * 8 * 4);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.at("z"), all.at("z"));

  exe.reset_states();
  const std::vector<Tensor> inputs = {x};
  const std::vector<size_t> indices = {2, 1};
  const int64_t middle = exe.stats().device.bytes_down;
  const std::span<const Tensor> two = exe.run_slots(inputs, indices);
  EXPECT_EQ(exe.stats().device.bytes_down - middle, 2 * 4 * 8 * 4);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], all.at("old"));
  EXPECT_EQ(two[1], all.at("z"));
  const auto allocated = allocations();
  exe.run_slots(inputs, indices);
  EXPECT_EQ(allocations(), allocated);
}

TEST_F(SteadyRunOnWebGpu, ASealedOutputKeepsItsBytes) {
  Graph g;
  g.output(ops::neg(g.input("x", {{3}, DType::F32})), "y");
  Executable exe = compile(std::move(g), {.device = "webgpu"});
  const std::vector<Tensor> first = {Tensor::f32({3}, {1, 2, 3})}, second = {Tensor::f32({3}, {4, 5, 6})};
  Tensor kept = exe.run_slots(first)[0];
  kept.seal();
  EXPECT_EQ(exe.run_slots(second)[0], Tensor::f32({3}, {-4, -5, -6}));
  EXPECT_EQ(kept, Tensor::f32({3}, {-1, -2, -3}));
  const auto allocated = allocations();
  exe.run_slots(first);
  EXPECT_EQ(allocations(), allocated);
}

// One buffer for all readbacks, which grows by doubling, and one for what is tiny.
TEST_F(SteadyRunOnWebGpu, ATinyOutputHasABufferOfItsOwn) {
  Graph g;
  const Value x = g.input("x", {{300}, DType::F32});
  const auto first = [&](int64_t n) { return ops::neg(ops::narrow(x, {.axis = 0, .start = 0, .len = n})); };
  g.output(first(4), "tiny");
  g.output(first(5), "five");
  g.output(first(60), "sixty");
  g.output(first(65), "more");
  g.output(first(128), "most");
  g.output(first(300), "all");
  Executable exe = compile(g, {.device = "webgpu"});
  Rng rng(1);
  const Tensor in = rng.tensor({300});
  // Buffers that a run makes, which gives what it should.
  const auto made = [&](const std::string& output, int64_t n) {
    const DeviceStats before = exe.stats().device;
    const Tensor y = exe.run({{"x", in}}, {.outputs = {output}}).at(output);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y.at(i), -in.at(i)) << output;
    const DeviceStats one = exe.stats().device - before;
    EXPECT_EQ(one.submits, 1) << output;
    EXPECT_EQ(one.bytes_down, 4 * n) << output;
    return one.buffers;
  };
  EXPECT_EQ(made("five", 5), 1);    // 256 bytes, the common one
  EXPECT_EQ(made("sixty", 60), 0);  // fits
  EXPECT_EQ(made("tiny", 4), 1);    // its own
  EXPECT_EQ(made("more", 65), 1);   // 512 bytes
  EXPECT_EQ(made("most", 128), 0);
  EXPECT_EQ(made("all", 300), 1);
  for (const auto& [output, n] :
       {std::pair{"five", 5}, {"sixty", 60}, {"tiny", 4}, {"more", 65}, {"most", 128}, {"all", 300}})
    EXPECT_EQ(made(output, n), 0) << output;
}

TEST_F(SteadyRunOnWebGpu, SkippedReadbackKeepsOldOutputsAndNewStates) {
  CompileOptions options{.device = "webgpu"};
  options.webgpu.skip_readback = true;
  Graph g;
  const Value s = g.state("s", {{2}, DType::F32}), x = g.input("x", {{2}, DType::F32});
  g.update(s, s + x);
  g.output(s + x, "y");
  Executable exe = compile(g, options);
  for (int i = 0; i < 3; ++i) exe.run({{"x", Tensor::f32({2}, {1, 2})}});
  EXPECT_EQ(exe.stats().device.bytes_down, 0);
  EXPECT_EQ(exe.read_state("s"), Tensor::f32({2}, {3, 6}));
}

// A product whose weight is transposed first: what is computed of weights is shared as well.
static Graph weighted() {
  Graph g;
  const Value x = g.input("x", {{2, 64}, DType::F32}), w = g.param("w", {{64, 64}, DType::F32});
  const Value s = g.state("s", {{2, 64}, DType::F32});
  const Value y = ops::matmul(x, ops::exp(ops::transpose(w, {.perm = {1, 0}}))) + s;
  g.update(s, y);
  g.output(y, "y");
  return g;
}

TEST_F(SteadyRunOnWebGpu, ClonesHaveTheirWeightsOnTheDeviceOnce) {
  Rng rng(2);
  const Tensor x = rng.tensor({2, 64}), one = rng.tensor({64, 64}), other = rng.tensor({64, 64});
  const Graph graph = weighted();
  const auto expected = [&](const Tensor& w, const Tensor& s) {
    Executable exe = compile(graph, {.device = "webgpu"});
    exe.set_param("w", w);
    exe.set_state("s", s);
    return exe.run({{"x", x}}).at("y");
  };
  const Tensor zeros(DType::F32, {2, 64});
  Executable exe = compile(graph, {.device = "webgpu"});
  exe.set_param("w", one);
  const Tensor first = exe.run({{"x", x}}).at("y");
  EXPECT_EQ(first, expected(one, zeros));
  Executable copy = exe.clone(), third = exe.clone();
  const DeviceStats before = copy.stats().device;
  const Tensor second = copy.run({{"x", x}}).at("y");
  EXPECT_EQ(second, expected(one, first));
  const DeviceStats run = copy.stats().device - before;
  EXPECT_LT(before.bytes_up + run.bytes_up, 64 * 64 * 4);
  EXPECT_EQ(run.dispatches, exe.stats().device.dispatches - 2);  // the weight is transposed, its exponentials are there
  // Each has weights of its own as soon as one gets others, and its own state throughout.
  copy.set_param("w", other);
  EXPECT_EQ(copy.run({{"x", x}}).at("y"), expected(other, second));
  EXPECT_EQ(exe.run({{"x", x}}).at("y"), second);
  exe.set_param("w", other);
  EXPECT_EQ(third.run({{"x", x}}).at("y"), second);
  EXPECT_EQ(exe.run({{"x", x}}).at("y"), expected(other, second));
  third.set_param("w", other);  // nobody else has them now
  EXPECT_EQ(third.run({{"x", x}}).at("y"), expected(other, second));
}

}  // namespace rlx::test
