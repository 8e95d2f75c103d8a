// WebGpuOptions::check_indices (spec 10, Q16). What each op says is in its op cases.
#include "rlx/ops.h"
#include "support/expect_error.h"
#include "support/random.h"
#include "webgpu_test.h"

namespace rlx::test {

namespace {

CompileOptions checking(bool on) {
  CompileOptions options = webgpu_options();
  options.webgpu.check_indices = on;
  return options;
}

Graph lookup(const Dim& count) {
  Graph g;
  const Value i = g.input("i", {{count}, DType::I32}), table = g.param("table", {{4, 3}, DType::F32});
  g.output(ops::tanh(ops::gather(table, i)), "y");
  return g;
}

int64_t checks(const Executable& exe, const std::string& kernel = "check_indices") {
  int64_t count = 0;
  for (const StepInfo& s : exe.plan().steps) count += s.kernel == "webgpu/" + kernel ? 1 : 0;
  return count;
}

// What a run of `g` complains about; empty: nothing.
std::string complaint(const Graph& g, const NamedTensors& inputs, const CompileOptions& options) {
  Executable exe = compile(g, options);
  try {
    exe.run(inputs);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    return e.message();
  }
  return "";
}

// Two layers' caches in pages of two tokens; the queries are those of the last tokens.
constexpr int64_t kPages = 5;
Graph two_layers(int64_t batch, const Dim& rows) {
  Graph g;
  const TensorType pool{{kPages, 2, 1, 4}, DType::F32};
  const Value table = g.input("table", {{batch, 3}, DType::I32}), len = g.input("len", {{batch}, DType::I32}),
              kv_len = g.input("kv_len", {{batch}, DType::I32});
  Value x = g.input("x", {{batch, rows, 1, 4}, DType::F32});
  for (const std::string layer : {"0", "1"}) {
    const Value k = g.state("k" + layer, pool), v = g.state("v" + layer, pool);
    const Value next_k = ops::paged_kv_append(k, x, table, len), next_v = ops::paged_kv_append(v, x, table, len);
    g.update(k, next_k);
    g.update(v, next_v);
    x = ops::paged_attention(Values{x, next_k, next_v, table, kv_len}, {.num_heads = 1, .head_dim = 4});
  }
  g.output(x, "y");
  return g;
}

}  // namespace

using CheckIndicesOnWebGpu = WebGpu;

TEST_F(CheckIndicesOnWebGpu, TablesThatAreReadInPartsAreCheckedAsOne) {
  for (const DType d : {DType::I32, DType::I64}) {
    Graph g;
    const Value i = g.input("i", {{3}, d}), table = g.param("table", {{90, 12}, DType::F32});
    g.output(ops::gather(table, i), "y");
    CompileOptions options = checking(true);
    options.webgpu.max_binding_bytes = 1024;
    Executable exe = compile(g, options), oracle = compile(g, {.device = "reference"});
    for (Executable* e : {&exe, &oracle}) e->set_param("table", Rng(1).tensor({90, 12}));
    for (const int bad : {90, -91})
      EXPECT_ERROR(exe.run({{"i", Tensor::i32({3}, {0, bad, 2}).cast(d)}}), kRuntime,
                   str("Index (", bad, ") is out of range for size (90)."));
    const Tensor good = Tensor::i32({3}, {-90, 89, -1}).cast(d);
    EXPECT_EQ(exe.run({{"i", good}}).at("y"), oracle.run({{"i", good}}).at("y"));
    EXPECT_EQ(exe.stats().device.host_steps, 0);
  }
}

TEST_F(CheckIndicesOnWebGpu, ABadIndexIsAnErrorOfItsRunAlone) {
  Executable exe = compile(lookup(3), checking(true));
  EXPECT_EQ(checks(exe), 1);
  exe.set_param("table", Rng(1).tensor({4, 3}));
  const Tensor good = Tensor::i32({3}, {0, -1, 3});
  const Tensor y = exe.run({{"i", good}}).at("y");
  for (int round = 0; round < 2; ++round) {
    try {
      exe.run({{"i", Tensor::i32({3}, {1, 7, -9})}});
      ADD_FAILURE() << "no Error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
      const std::string what = e.what();
      EXPECT_NE(what.find("Index (7) is out of range for size (4)."), std::string::npos) << what;
      EXPECT_NE(what.find("(gather)"), std::string::npos) << what;
    }
    EXPECT_EQ(exe.run({{"i", good}}).at("y"), y);
  }
}

TEST_F(CheckIndicesOnWebGpu, OffItCostsNothingAndClamps) {
  Executable exe = compile(lookup(3), checking(false)), checked = compile(lookup(3), checking(true));
  EXPECT_EQ(checks(exe), 0);
  EXPECT_EQ(exe.plan().steps.size() + 1, checked.plan().steps.size());
  exe.set_param("table", Rng(1).tensor({4, 3}));
  EXPECT_EQ(exe.run({{"i", Tensor::i32({3}, {1, 7, -9})}}).at("y"),
            exe.run({{"i", Tensor::i32({3}, {1, 3, 0})}}).at("y"));
}

TEST_F(CheckIndicesOnWebGpu, RowsBeyondAnActiveExtentMayBeAnything) {
  Executable exe = compile(lookup(Dim::symbol(symbols::kBatch)), checking(true));
  exe.set_param("table", Rng(1).tensor({4, 3}));
  const Tensor padded = Tensor::i32({4}, {1, 2, 99, 99});
  EXPECT_ERROR(exe.run({{"i", padded}}), kRuntime, "Index (99)");
  exe.set_active_extent(2, 4);
  exe.run({{"i", padded}});
  EXPECT_EQ(exe.stats().full_extent_runs, 0);
  exe.set_active_extent(3, 4);
  EXPECT_ERROR(exe.run({{"i", padded}}), kRuntime, "Index (99)");
}

// The same where the extent cannot be used, and all rows are computed.
TEST_F(CheckIndicesOnWebGpu, RowsInUseAreCheckedWhereAllAreComputed) {
  Graph g;
  const Value i = g.input("i", {{Dim::symbol(symbols::kBatch)}, DType::I32}),
              table = g.param("table", {{4, 3}, DType::F32});
  g.output(ops::softmax(ops::gather(table, i), {.axis = 0}), "y");
  Executable exe = compile(g, checking(true));
  exe.set_param("table", Rng(1).tensor({4, 3}));
  const Tensor padded = Tensor::i32({4}, {1, 2, 99, 98});
  exe.set_active_extent(2, 4);
  exe.run({{"i", padded}});
  EXPECT_EQ(exe.stats().full_extent_runs, 1);
  exe.set_active_extent(4, 4);
  exe.run({{"i", Tensor::i32({4}, {1, 2, 3, 0})}});  // nothing is left of the run before
  exe.set_active_extent(3, 4);
  EXPECT_ERROR(exe.run({{"i", padded}}), kRuntime, "Index (99)");
}

// A check whose rows are not the first of its indices is left out with all others of them.
TEST_F(CheckIndicesOnWebGpu, IndicesThatCannotBeCutAreNotChecked) {
  Graph g;
  const Value i = g.input("i", {{2, Dim::symbol(symbols::kBatch)}, DType::I32}), j = g.input("j", {{2}, DType::I32});
  const Value table = g.param("table", {{4, 3}, DType::F32});
  g.output(ops::gather(table, i), "y");
  g.output(ops::gather(table, j), "z");
  Executable exe = compile(g, checking(true));
  exe.set_param("table", Rng(1).tensor({4, 3}));
  const Tensor padded = Tensor::i32({2, 2}, {1, 99, 2, 99}), good = Tensor::i32({2}, {0, 3});
  exe.set_active_extent(1, 2);
  exe.run({{"i", padded}, {"j", good}});
  EXPECT_EQ(exe.stats().full_extent_runs, 1);
  EXPECT_ERROR(exe.run({{"i", padded}, {"j", Tensor::i32({2}, {0, 7})}}), kRuntime, "Index (7)");
  exe.set_active_extent(2, 2);
  EXPECT_ERROR(exe.run({{"i", padded}, {"j", good}}), kRuntime, "Index (99)");
}

// Rows of weights by weights are looked up once, and again until they are right.
TEST_F(CheckIndicesOnWebGpu, ABadIndexInAWeightIsAnErrorOfEveryRun) {
  Graph g;
  const Value i = g.param("i", {{2}, DType::I32}), table = g.param("table", {{4, 3}, DType::F32});
  g.output(ops::gather(table, i) + g.input("x", {{2, 3}, DType::F32}), "y");
  Executable exe = compile(g, checking(true));
  const NamedTensors in = {{"x", Rng(1).tensor({2, 3})}};
  exe.set_param("table", Rng(2).tensor({4, 3}));
  exe.set_param("i", Tensor::i32({2}, {3, 4}));
  for (int run = 0; run < 3; ++run) EXPECT_ERROR(exe.run(in), kRuntime, "Index (4) is out of range for size (4).");
  exe.set_param("i", Tensor::i32({2}, {3, 0}));
  exe.run(in);
  const int64_t before = exe.stats().device.dispatches;
  exe.run(in);
  EXPECT_EQ(exe.stats().device.dispatches - before, 1);
}

// What a run has noted that then failed at something else is not told by the next one.
TEST_F(CheckIndicesOnWebGpu, ARunThatFailedElsewhereLeavesNothing) {
  Graph g;
  const Value i = g.input("i", {{1}, DType::I32}), where = g.param("where", {{4}, DType::I32});
  const Value table = g.param("table", {{4}, DType::F64});
  g.output(ops::gather(table, ops::gather(where, i)), "y");  // the second one on the host
  Executable exe = compile(g, checking(true));
  exe.set_param("where", Tensor::i32({4}, {0, 1, 2, 9}));
  exe.set_param("table", Rng(1).tensor({4}, DType::F64));
  const Tensor y = exe.run({{"i", Tensor::i32({1}, {2})}}).at("y");
  EXPECT_ERROR(exe.run({{"i", Tensor::i32({1}, {99})}}), kRuntime, "Index (9) is out of range");
  EXPECT_EQ(exe.run({{"i", Tensor::i32({1}, {2})}}).at("y"), y);
}

// The rows that are appended count, not those that there is room for in the operand.
TEST_F(CheckIndicesOnWebGpu, AppendedRowsAreThoseInUse) {
  Graph g;
  const Dim rows = Dim::symbol(symbols::kBatch);
  const Value cache = g.state("cache", {{1, 6, 2}, DType::F32}), len = g.input("len", {{1}, DType::I32}),
              x = g.input("x", {{1, rows, 2}, DType::F32});
  const Value next = ops::kv_append(cache, x, len);
  g.update(cache, next);
  g.output(next, "y");
  Executable exe = compile(g, checking(true));
  const Tensor four = Rng(2).tensor({1, 4, 2});
  EXPECT_ERROR(exe.run({{"x", four}, {"len", Tensor::i32({1}, {3})}}), kRuntime, "Rows 3 … 7 of batch 0 do not fit");
  exe.set_active_extent(3, 4);
  exe.run({{"x", four}, {"len", Tensor::i32({1}, {3})}});
  EXPECT_ERROR(exe.run({{"x", four}, {"len", Tensor::i32({1}, {4})}}), kRuntime, "Rows 4 … 7 of batch 0 do not fit");
}

TEST_F(CheckIndicesOnWebGpu, PositionsBeyondAnActiveExtentMayBeAnything) {
  Graph g;
  const Dim rows = Dim::symbol(symbols::kBatch);
  const Value x = g.input("x", {{1, rows, 4}, DType::F32}), at = g.input("at", {{1, rows}, DType::I32});
  const Value cosines = g.param("cos", {{5, 2}, DType::F32}), sines = g.param("sin", {{5, 2}, DType::F32});
  g.output(ops::rope(Values{x, cosines, sines, at}, {.head_dim = 4}), "y");
  Executable exe = compile(g, checking(true));
  Rng rng(5);
  exe.set_param("cos", rng.tensor({5, 2}));
  exe.set_param("sin", rng.tensor({5, 2}));
  const Tensor four = rng.tensor({1, 4, 4}), padded = Tensor::i32({1, 4}, {0, 1, 4, 99});
  EXPECT_ERROR(exe.run({{"x", four}, {"at", padded}}), kRuntime, "Position (99) is outside the table's rows (5).");
  exe.set_active_extent(3, 4);
  exe.run({{"x", four}, {"at", padded}});
  EXPECT_EQ(exe.stats().full_extent_runs, 0);
  EXPECT_ERROR(exe.run({{"x", four}, {"at", Tensor::i32({1, 4}, {0, 1, 5, 99})}}), kRuntime,
               "Position (5) is outside the table's rows (5).");
}

// What several layers look up by is checked once, and the run stays one submission that brings four words back.
TEST_F(CheckIndicesOnWebGpu, LayersShareTheirChecks) {
  Executable exe = compile(two_layers(2, 1), checking(true));
  EXPECT_EQ(checks(exe, "check_pages"), 2);  // of len and of kv_len
  Rng rng(6);
  const NamedTensors inputs = {{"table", Tensor::i32({2, 3}, {0, 1, 2, 3, 4, 0})},
                               {"len", Tensor::i32({2}, {4, 2})},
                               {"kv_len", Tensor::i32({2}, {5, 3})},
                               {"x", rng.tensor({2, 1, 1, 4})}};
  exe.run(inputs);
  const DeviceStats before = exe.stats().device;
  for (int i = 0; i < 3; ++i) exe.run(inputs);
  const DeviceStats after = exe.stats().device;
  EXPECT_EQ(after.submits - before.submits, 3);
  EXPECT_EQ(after.bytes_down - before.bytes_down, 3 * (2 * 4 * 4 + 16));
  EXPECT_EQ(after.host_steps, 0);
}

TEST_F(CheckIndicesOnWebGpu, PagesAreThoseThatTokensNeed) {
  const Graph g = two_layers(2, 1);
  const Tensor x = Rng(7).tensor({2, 1, 1, 4});
  struct Case {
    std::vector<int32_t> table, len, kv_len;
    std::string says;
  };
  const Case cases[] = {
      {{0, 1, 2, 3, 4, -9}, {5, 3}, {6, 4}, ""},
      {{0, 1, 2, 3, 4, -9}, {5, 4}, {6, 4}, "Page -9 of batch 1 is outside the pool (5)."},
      {{0, -9, 2, 3, 4, 0}, {5, 3}, {2, 4}, ""},
      {{0, -9, 2, 3, 4, 0}, {5, 3}, {3, 4}, "Page -9 of batch 0 is outside the pool (5)."},
      {{0, 1, 5, 3, 4, 0}, {4, 6}, {5, 7}, "Page 5 of batch 0 is outside the pool (5)."},
      {{0, 1, 2, 3, 4, 0}, {6, 7}, {5, 7}, "Tokens 6 … 7 of batch 0 do not fit its pages (6)."},
      {{0, 1, 2, 3, 4, 0}, {5, -1}, {5, 7}, "Tokens -1 … 0 of batch 1 do not fit its pages (6)."},
      {{0, 1, 2, 3, 4, 0}, {5, INT32_MAX}, {6, 6}, "Tokens 2147483647 … 2147483648 of batch 1 do not fit"},
      {{0, 1, 2, 3, 4, 0}, {5, 5}, {6, 7}, "Tokens 0 … 7 of batch 1 do not fit its pages (6)."},
      {{0, 1, 2, 3, 4, 0}, {5, 5}, {6, INT32_MIN}, "Tokens 0 … -2147483648 of batch 1 do not fit its pages (6)."},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.says);
    const NamedTensors inputs = {{"table", Tensor::i32({2, 3}, c.table)},
                                 {"len", Tensor::i32({2}, c.len)},
                                 {"kv_len", Tensor::i32({2}, c.kv_len)},
                                 {"x", x}};
    const std::string expected = complaint(g, inputs, {.device = "reference"});
    EXPECT_EQ(expected.substr(0, c.says.size()), c.says);
    EXPECT_EQ(c.says.empty(), expected.empty()) << expected;
    EXPECT_EQ(complaint(g, inputs, checking(true)), expected);
    EXPECT_EQ(complaint(g, inputs, checking(false)), "");
  }
}

TEST_F(CheckIndicesOnWebGpu, TokensInPagesAreThoseInUse) {
  Executable exe = compile(two_layers(1, Dim::symbol(symbols::kBatch)), checking(true));
  NamedTensors inputs = {{"table", Tensor::i32({1, 3}, {3, 4, -1})},
                         {"len", Tensor::i32({1}, {1})},
                         {"kv_len", Tensor::i32({1}, {4})},
                         {"x", Rng(8).tensor({1, 4, 1, 4})}};
  EXPECT_ERROR(exe.run(inputs), kRuntime, "Page -1 of batch 0 is outside the pool (5).");
  exe.set_active_extent(3, 4);
  exe.run(inputs);
  EXPECT_EQ(exe.stats().full_extent_runs, 0);
  inputs["len"] = Tensor::i32({1}, {4});
  EXPECT_ERROR(exe.run(inputs), kRuntime, "Tokens 4 … 7 of batch 0 do not fit its pages (6).");
}

// In a region that runs on the device.
TEST_F(CheckIndicesOnWebGpu, ABadIndexInALoopIsFound) {
  const TensorType row{{3}, DType::F32}, index{{1}, DType::I32};
  const auto body = std::make_shared<Graph>("body");
  {
    const Value carry = body->input("carry", row), i = body->input("i", index);
    const Value table = body->param("table", {{4, 3}, DType::F32});
    body->output(ops::softmax(carry + ops::reshape(ops::gather(table, i), {.new_shape = {3}})), "carry");
  }
  Graph g;
  const Value x = g.input("x", row), is = g.input("is", {{2, 1}, DType::I32});
  g.output(ops::scan(Values{x, is}, {.body = body, .length = 2, .num_xs = 1}), "y");
  CompileOptions options = checking(true);
  options.webgpu.min_loop_work = 0;
  options.skip_passes = {"lower_control_flow"};
  Executable exe = compile(g, options);
  Rng rng(3);
  exe.set_param("table", rng.tensor({4, 3}));
  const Tensor start = rng.tensor({3});
  exe.run({{"x", start}, {"is", Tensor::i32({2, 1}, {0, 3})}});
  EXPECT_EQ(exe.stats().device.host_steps, 0);
  EXPECT_ERROR(exe.run({{"x", start}, {"is", Tensor::i32({2, 1}, {0, 4})}}), kRuntime, "Index (4) is out of range");
}

}  // namespace rlx::test
