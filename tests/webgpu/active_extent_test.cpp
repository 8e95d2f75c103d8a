// An active extent cuts grids and counts, and writes parameters only when it changes (spec 40, 5).
#include <cstring>

#include "rlx/log.h"
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/random.h"
#include "support/random_graph.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

const Dim kBatch = Dim::symbol(symbols::kBatch);

Graph row_wise(const Dim& rows, int64_t columns) {
  Graph g;
  const Value x = g.input("x", {{rows, columns}, DType::F32}), w = g.param("w", {{columns}, DType::F32});
  g.output(ops::softmax(x * w), "y");
  return g;
}

void expect_first_rows(const Tensor& actual, const Tensor& expected, int64_t rows) {
  const size_t bytes = expected.bytes().size() / static_cast<size_t>(expected.sizes()[0]) * static_cast<size_t>(rows);
  EXPECT_EQ(std::memcmp(actual.bytes().data(), expected.bytes().data(), bytes), 0) << rows << " rows";
}

}  // namespace

using ActiveExtentOnWebGpu = WebGpu;

TEST_F(ActiveExtentOnWebGpu, RunsTheFirstRowsOnly) {
  Rng rng(5);
  const Tensor w = rng.tensor({300});
  for (const Dim& rows : {kBatch, Dim(8)}) {
    // Poison shows what was not computed.
    Executable exe = compile(row_wise(rows, 300), webgpu_options(true));
    exe.set_param("w", w);
    const Tensor x = rng.tensor({8, 300});
    const Tensor full = exe.run({{"x", x}}).at("y");
    for (const int64_t actual : {5, 1, 8, 0, 3}) {
      exe.set_active_extent(actual, 8);
      expect_first_rows(exe.run({{"x", x}}).at("y"), full, actual);
    }
    EXPECT_EQ(exe.stats().full_extent_runs, 0);
  }
}

// Their grid is not cut: workgroups find that they have no tile.
TEST_F(ActiveExtentOnWebGpu, NormsReadOnceRunTheFirstRowsOnly) {
  constexpr int64_t kCols = 16500;
  Rng rng(6);
  Graph g;
  const TensorType row{{kCols}, DType::F32};
  g.output(ops::layer_norm(g.input("x", {{kBatch, kCols}, DType::F32}), g.param("g", row), g.param("b", row)), "y");
  CompileOptions options = webgpu_options(true);
  options.webgpu.read_once = true;
  Executable exe = compile(std::move(g), options);
  for (const char* name : {"g", "b"}) exe.set_param(name, rng.tensor({kCols}));
  const Tensor x = rng.tensor({8, kCols}), full = exe.run({{"x", x}}).at("y");
  for (const int64_t actual : {5, 1, 8, 0, 3}) {
    exe.set_active_extent(actual, 8);
    expect_first_rows(exe.run({{"x", x}}).at("y"), full, actual);
  }
  EXPECT_EQ(exe.stats().full_extent_runs, 0);
}

TEST_F(ActiveExtentOnWebGpu, RowsBeyondItAreNotComputed) {
  Executable exe = compile(row_wise(kBatch, 3), webgpu_options());
  exe.set_param("w", Tensor::f32({3}, {1, 1, 1}));
  const Tensor ones = Tensor::f32({4, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Tensor third = exe.run({{"x", ones}}).at("y");
  exe.set_active_extent(2, 4);
  const Tensor y = exe.run({{"x", Tensor::f32({4, 3}, {100, 0, 0, 100, 0, 0, 100, 0, 0, 100, 0, 0})}}).at("y");
  EXPECT_EQ(y, Tensor::f32({4, 3}, {1, 0, 0, 1, 0, 0, third.values<float>()[6], third.values<float>()[7],
                                    third.values<float>()[8], third.values<float>()[9], third.values<float>()[10],
                                    third.values<float>()[11]}));
}

TEST_F(ActiveExtentOnWebGpu, ParametersAreWrittenWhenItChanges) {
  Executable exe = compile(row_wise(kBatch, 3), webgpu_options());
  exe.set_param("w", Tensor::f32({3}, {1, 1, 1}));
  const Tensor x(DType::F32, {8, 3});
  exe.run({{"x", x}});
  const auto writes = [&] { return exe.stats().device.parameter_writes; };
  const int64_t before = writes();
  exe.set_active_extent(3, 8);
  exe.run({{"x", x}});
  EXPECT_EQ(writes(), before + 1);
  exe.set_active_extent(3, 8);
  exe.run({{"x", x}});
  exe.run({{"x", x}});
  EXPECT_EQ(writes(), before + 1);
  exe.set_active_extent(8, 8);
  exe.run({{"x", x}});
  EXPECT_EQ(writes(), before + 2);
}

TEST_F(ActiveExtentOnWebGpu, FallsBackToAllRowsWhereAStepMixesThem) {
  Graph g;
  const Value x = g.input("x", {{kBatch, 3}, DType::F32});
  g.output(ops::softmax(x, {.axis = 0}), "y");
  std::string report;
  set_log([&](LogLevel, std::string_view text) { report = text; });
  Executable exe = compile(g, webgpu_options());
  Rng rng(5);
  const Tensor in = rng.tensor({4, 3});
  const Tensor full = exe.run({{"x", in}}).at("y");
  exe.set_active_extent(2, 4);
  EXPECT_EQ(exe.run({{"x", in}}).at("y"), full);
  EXPECT_EQ(exe.stats().full_extent_runs, 1);
  EXPECT_NE(report.find("(softmax) works along the rows"), std::string::npos) << report;
  set_log({});
}

TEST_F(ActiveExtentOnWebGpu, StepsThatDoNotHaveTheRowsRunInFull) {
  // The weights' own softmax, and the unpacked mask, have nothing to do with the batch.
  Graph g;
  const Value x = g.input("x", {{kBatch, 4}, DType::F32}), m = g.input("m", {{6, 4}, DType::Bool});
  const Value t = g.input("t", {{6, 4}, DType::F32});
  const Value masked = ops::softmax(ops::where(m, t, ops::neg(t)));
  g.output(ops::softmax(x), "y");
  g.output(masked, "z");
  Executable exe = compile(g, webgpu_options(true));
  Rng rng(7);
  const NamedTensors in = {
      {"x", rng.tensor({6, 4})}, {"m", rng.tensor({6, 4}, DType::Bool)}, {"t", rng.tensor({6, 4})}};
  const NamedTensors full = exe.run(in);
  exe.set_active_extent(2, 6);
  const NamedTensors cut = exe.run(in);
  EXPECT_EQ(exe.stats().full_extent_runs, 0);
  EXPECT_EQ(cut.at("z"), full.at("z"));
  expect_first_rows(cut.at("y"), full.at("y"), 2);
}

TEST_F(ActiveExtentOnWebGpu, RowsOutOfProportionRunInFull) {
  Graph g;
  const Value x = g.input("x", {{Dim::symbol(symbols::kBatch, 1, 100), 4}, DType::F32});
  g.output(ops::softmax(x), "y");
  g.output(g.dim_value(kBatch), "n");
  Executable exe = compile(g, webgpu_options(true));
  Rng rng(7);
  const Tensor in = rng.tensor({108, 4});
  const Tensor full = exe.run({{"x", in}}).at("y");
  exe.set_active_extent(1, 8);
  const NamedTensors out = exe.run({{"x", in}});
  EXPECT_EQ(out.at("y"), full);
  EXPECT_EQ(out.at("n"), Tensor::i32({}, {1}));
  EXPECT_EQ(exe.stats().full_extent_runs, 1);
}

// Whatever the steps do, dim_value is the actual size, and padded rows never enter a state.
TEST_F(ActiveExtentOnWebGpu, StatesNeverSeePaddedRows) {
  for (const bool mixes : {false, true}) {
    Graph g;
    const Value x = g.input("x", {{1, Dim::symbol(symbols::kSeq), 1, 2}, DType::F32}),
                n = g.state("n", {{1}, DType::I32});
    const Value cache = g.state("cache", {{1, 16, 1, 2}, DType::F32});
    const Value next = ops::kv_append(cache, x + x, n);
    g.update(cache, next);
    g.update(n, n + ops::reshape(g.dim_value(Dim::symbol(symbols::kSeq)), {.new_shape = {1}}));
    if (mixes) g.output(ops::softmax(x, {.axis = 1}), "y");
    Executable exe = compile(g, webgpu_options(true));
    const Tensor in = Tensor::f32({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    exe.run({{"x", in}});
    exe.set_active_extent(1, 4);
    exe.run({{"x", in}});
    exe.run({{"x", in}});
    EXPECT_EQ(exe.stats().full_extent_runs, mixes ? 2 : 0);
    EXPECT_EQ(exe.read_state("n"), Tensor::i32({1}, {6}));
    EXPECT_EQ(exe.read_state("cache"),
              Tensor::f32({1, 16, 1, 2}, {2, 4, 6, 8, 10, 12, 14, 16, 2, 4, 2, 4, 0, 0, 0, 0,
                                          0, 0, 0, 0, 0,  0,  0,  0,  0, 0, 0, 0, 0, 0, 0, 0}));
  }
}

// Rows of a tensor whose outermost axis is the batch; the tensor itself where it has none.
static Tensor first_rows(const Tensor& t, const Tensor& like) {
  if (t.sizes() == like.sizes()) return t;
  return Tensor::borrow(t.dtype(), like.sizes(), t.bytes().first(like.bytes().size())).clone();
}

// Random graphs at every extent against the oracle on the rows in use alone.
TEST_F(ActiveExtentOnWebGpu, RandomGraphsGiveWhatTheRowsInUseGive) {
  int honoured = 0;
  const auto enough = [&] { return honoured > 3; };
  for_random(40, enough, [&](Rng& rng) {
    const RandomGraph r =
        random_graph(rng, {.nodes = 12, .states = false, .regions = false, .symbols = true, .smooth = true});
    const int64_t actual = rng.integer(1, 3);
    try {
      bind(r.graph, {{symbols::kBatch, 4}});
      bind(r.graph, {{symbols::kBatch, actual}});
    } catch (const Error&) {  // a size that the symbol is broadcast with is not its own
      return;
    }
    CompileOptions options = webgpu_options(true), oracle_options{.device = "reference"};
    options.dims = {{symbols::kBatch, 4}};
    options.bucket_symbol = symbols::kBatch;
    oracle_options.dims = {{symbols::kBatch, actual}};
    Executable exe = compile(r.graph, options), oracle = compile(r.graph, oracle_options);
    for (Executable* e : {&exe, &oracle})
      for (const Port& p : e->params()) e->set_param(p.name, r.params.at(p.name));
    std::vector<Tensor> rows;
    const std::vector<Port> ports = oracle.inputs();
    for (size_t i = 0; i < r.inputs.size(); ++i)
      rows.push_back(
          first_rows(r.inputs[i], Tensor(DType::F32, ports[i].type.shape.bind({{symbols::kBatch, actual}}).sizes())));
    exe.set_active_extent(actual, 4);
    const std::span<const Tensor> cut = exe.run_slots(r.inputs);
    if (exe.stats().full_extent_runs > 0) return;
    ++honoured;
    const std::span<const Tensor> expected = oracle.run_slots(rows);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(near(first_rows(cut[i], expected[i]), expected[i], {.rel = 1e-3, .abs = 1e-4, .of_max = 1e-3}))
          << "output " << i << " at " << actual << " of 4\n"
          << print(r.graph);
  });
  EXPECT_TRUE(enough()) << honoured;
}

// Kernels that loop over the rows by themselves: queries and keys, a scan's tokens. Against the oracle on the rows in
// use; `batch`: the rows are sequences, not tokens.
TEST_F(ActiveExtentOnWebGpu, AttentionAndScansAreCutByTheirOwnBound) {
  Rng rng(9);
  const int64_t upper = 300;
  for (const bool batch : {false, true})
    for (const auto mask : {ops::MaskKind::kNone, ops::MaskKind::kCausal}) {
      const Dim rows = Dim::symbol(symbols::kSeq);
      const int64_t other = batch ? 5 : 1;
      const auto sizes = [&](const Dim& n, std::vector<Dim> rest) {
        std::vector<Dim> dims = {batch ? n : Dim(other), batch ? Dim(other) : n};
        dims.insert(dims.end(), rest.begin(), rest.end());
        return Shape(std::move(dims));
      };
      const bool scans = !batch;  // a state has as many sequences as the batch, whose number is fixed
      Graph g;
      const Value x = g.input("x", {sizes(rows, {2, 8}), DType::F32});
      const Value table = g.param("table", {{upper, 4}, DType::F32});
      const Value q = ops::rope(x, table, table, {.head_dim = 8, .layout = ops::AttentionLayout::kBshd});
      g.output(ops::attention(
                   q, x, q, {.num_heads = 2, .head_dim = 8, .layout = ops::AttentionLayout::kBshd, .mask_kind = mask}),
               "y");
      if (scans) {
        const Value u = ops::reshape(x, {.new_shape = {1, rows, 16}}), a = g.param("a", {{16, 3}, DType::F32});
        const Value b = g.input("b", {{1, rows, 3}, DType::F32}), state = g.state("state", {{1, 16, 3}, DType::F32});
        const Value scanned = ops::selective_scan(Values{u, ops::sigmoid(u), a, b, b, state}, {.state_size = 3});
        g.update(state, scanned.result(1));
        g.output(scanned, "scanned");
      }
      const int64_t actual = 7;
      CompileOptions options = webgpu_options(true), oracle_options{.device = "reference"};
      options.dims = {{symbols::kSeq, upper}};
      oracle_options.dims = {{symbols::kSeq, actual}};
      Executable exe = compile(g, options), oracle = compile(g, oracle_options);
      const Tensor angles = rng.tensor({upper, 4}), a = rng.uniform_tensor({16, 3}, -1, 0);
      for (Executable* e : {&exe, &oracle}) {
        e->set_param("table", angles);
        if (scans) e->set_param("a", a);
      }
      NamedTensors all, used;
      for (const Port& p : exe.inputs()) {
        all[p.name] = rng.tensor(p.type.shape.bind({{symbols::kSeq, upper}}).sizes());
        used[p.name] =
            first_rows(all[p.name], Tensor(DType::F32, p.type.shape.bind({{symbols::kSeq, actual}}).sizes()));
      }
      exe.set_active_extent(actual, upper);
      for (int run = 0; run < 2; ++run) {
        const NamedTensors cut = exe.run(all), expected = oracle.run(used);
        for (const auto& [name, value] : expected)
          EXPECT_TRUE(near(first_rows(cut.at(name), value), value, {.of_max = 1e-4}))
              << name << (batch ? " batch" : "");
        if (scans) {
          EXPECT_TRUE(near(exe.read_state("state"), oracle.read_state("state"), {.of_max = 1e-4}));
        }
      }
      EXPECT_EQ(exe.stats().full_extent_runs, 0);
      EXPECT_EQ(exe.stats().device.host_steps, 0);
    }
}

}  // namespace rlx::test
