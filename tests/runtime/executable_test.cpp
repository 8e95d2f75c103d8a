#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <thread>

#include "rlx/log.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/expect_error.h"
#include "support/op_cases.h"
#include "support/random.h"

namespace rlx::test {

static const CompileOptions kReference = {.device = "reference", .verify_plan = true, .poison = true};
static const Dim kBatch = Dim::symbol(symbols::kBatch);

// y = x * w + 1, z = -x
static Graph small_graph(const Dim& rows = 2) {
  Graph g;
  const Value x = g.input("x", {{rows, 3}, DType::F32}), w = g.param("w", {{3}, DType::F32});
  g.output(x * w + g.constant(Tensor::f32({}, {1})), "y");
  g.output(ops::neg(x), "z");
  return g;
}
static const Tensor kX = Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}), kW = Tensor::f32({3}, {1, 10, 100});

TEST(Executable, RunsAndReturnsTypedOutputsByName) {
  Executable exe = compile(small_graph(), kReference);
  EXPECT_EQ(exe.device(), "reference");
  exe.set_param("w", kW);
  const NamedTensors out = exe.run({{"x", kX}});
  EXPECT_EQ(out.at("y"), Tensor::f32({2, 3}, {2, 21, 301, 5, 51, 601}));
  EXPECT_EQ(out.at("z"), Tensor::f32({2, 3}, {-1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(exe.run({{"x", kX}}, {.outputs = {"z"}}).size(), 1u);
  const std::vector<Tensor> slots = {kX};
  const std::vector<size_t> backwards = {1, 0}, last = {1};
  ASSERT_EQ(exe.run_slots(slots, backwards).size(), 2u);
  EXPECT_EQ(exe.run_slots(slots, backwards)[1], out.at("y"));
  ASSERT_EQ(exe.run_slots(slots, last).size(), 1u);
  EXPECT_EQ(exe.run_slots(slots, last)[0], out.at("z"));
  exe.set_param("w", Tensor::f32({3}, {0, 0, 0}));  // again, between runs
  EXPECT_EQ(exe.run({{"x", kX}}).at("y"), Tensor::f32({2, 3}, {1, 1, 1, 1, 1, 1}));
}

TEST(Executable, SaysWhatIsWrongWithItsArguments) {
  Executable exe = compile(small_graph(), kReference);
  EXPECT_ERROR(exe.run({{"x", kX}}), kInvalid, "Params are not set: 'w' ([3] f32)");
  EXPECT_ERROR(exe.set_param("v", kW), kInvalid, "There is no param 'v'; there are: 'w'");
  EXPECT_ERROR(exe.set_param("w", Tensor::f32({2}, {1, 2})), kInvalid, "Param 'w' is [2] f32, not [3] f32");
  EXPECT_ERROR(exe.set_param("w", Tensor::i32({3}, {1, 2, 3})), kInvalid, "Param 'w' is [3] i32, not [3] f32");
  EXPECT_ERROR(exe.set_param_bytes("w", kW.bytes().first(8)), kInvalid, "has 12 bytes, 8 are given");
  exe.set_param_bytes("w", kW.bytes());
  EXPECT_ERROR(exe.run({}), kInvalid, "Inputs are not given: 'x' ([2, 3] f32)");
  EXPECT_ERROR(exe.run({{"x", kX}, {"q", kX}}), kInvalid, "There is no input 'q'; there are: 'x'");
  EXPECT_ERROR(exe.run({{"x", Tensor::f32({3}, {1, 2, 3})}}), kInvalid, "Input 'x' is [3] f32, not [2, 3] f32");
  EXPECT_ERROR(exe.run({{"x", Tensor(DType::F64, {2, 3})}}), kInvalid, "Input 'x' is [2, 3] f64, not [2, 3] f32");
  EXPECT_ERROR(exe.run({{"x", kX}}, {.outputs = {"q"}}), kInvalid, "There is no output 'q'");
  EXPECT_ERROR(exe.run_slots({}), kInvalid, "The graph has 1 inputs, 0 are given");
  EXPECT_ERROR(exe.run_slots(std::vector{kX}, std::vector<size_t>{2}), kInvalid,
               "Output (2) is out of range: the graph has 2 outputs.");
  EXPECT_ERROR(exe.read_state("s"), kInvalid, "There is no state 's'; the graph has none");
  EXPECT_EQ(exe.run({{"x", kX}}).at("y"), Tensor::f32({2, 3}, {2, 21, 301, 5, 51, 601}));  // nothing is lost
}

TEST(Executable, UnknownDevicesAndOpenSymbolsAreErrors) {
  EXPECT_ERROR(compile(small_graph(), {.device = "abacus"}), kUnavailable,
               "There is no device 'abacus'; there are: auto, ");
  Graph two;
  two.output(two.input("x", {{kBatch, Dim::symbol(symbols::kSeq)}, DType::F32}), "y");
  EXPECT_ERROR(compile(two, {.dims = {{symbols::kBatch, 2}}}), kInvalid, "Symbols (?1) have no size");
  EXPECT_FALSE(devices().empty());
}

TEST(Executable, CompilesAtTheFirstRunAndAgainOnlyForNewSizes) {
  Executable exe = compile(small_graph(kBatch), kReference);
  EXPECT_EQ(exe.stats().compiles, 0);
  EXPECT_ERROR(exe.plan(), kInvalid, "there is no plan yet");
  exe.set_param("w", kW);  // before sizes are known
  EXPECT_EQ(exe.run({{"x", kX}}).at("y").sizes(), (std::vector<int64_t>{2, 3}));
  exe.run({{"x", kX}});
  EXPECT_EQ(exe.stats().compiles, 1);
  EXPECT_EQ(exe.run({{"x", Tensor::f32({1, 3}, {1, 1, 1})}}).at("y"), Tensor::f32({1, 3}, {2, 11, 101}));
  EXPECT_EQ(exe.stats().compiles, 2);
  EXPECT_EQ(exe.run({{"x", Tensor(DType::F32, {0, 3})}}).at("y"), Tensor(DType::F32, {0, 3}));
  EXPECT_EQ(exe.run({{"x", kX}}).at("y"), Tensor::f32({2, 3}, {2, 21, 301, 5, 51, 601}));
  EXPECT_EQ(exe.stats().compiles, 4);
  Executable bound = compile(small_graph(kBatch), {.device = "reference", .dims = {{symbols::kBatch, 2}}});
  EXPECT_EQ(bound.stats().compiles, 1);
  bound.set_param("w", kW);
  EXPECT_ERROR(bound.run({{"x", Tensor(DType::F32, {3, 3})}}), kInvalid, "Input 'x' is [3, 3] f32, not [2, 3] f32");
}

TEST(Executable, StatesTakeTheirNewValuesTogetherWhenARunEnds) {
  Graph g;
  const TensorType type{{2}, DType::F32};
  const Value x = g.input("x", type), a = g.state("a", type), b = g.state("b", type);
  g.output(a + b, "sum");  // reads the old values
  g.update(a, b);          // swap, and
  g.update(b, a + x);
  Executable exe = compile(g, kReference);
  EXPECT_EQ(exe.run({{"x", Tensor::f32({2}, {1, 2})}}).at("sum"), Tensor::f32({2}, {0, 0}));
  EXPECT_EQ(exe.read_state("a"), Tensor::f32({2}, {0, 0}));
  EXPECT_EQ(exe.read_state("b"), Tensor::f32({2}, {1, 2}));
  exe.set_state("a", Tensor::f32({2}, {10, 20}));
  EXPECT_EQ(exe.run({{"x", Tensor::f32({2}, {5, 5})}}).at("sum"), Tensor::f32({2}, {11, 22}));
  EXPECT_EQ(exe.read_state("a"), Tensor::f32({2}, {1, 2}));
  EXPECT_EQ(exe.read_state("b"), Tensor::f32({2}, {15, 25}));
  EXPECT_ERROR(exe.set_state("a", Tensor::f32({1}, {1})), kInvalid, "State 'a' is [1] f32, not [2] f32");
  exe.reset_states();
  EXPECT_EQ(exe.read_state("b"), Tensor::f32({2}, {0, 0}));
}

TEST(Executable, ACounterIsUpdatedInPlace) {
  Graph g;
  const Value s = g.state("n", {{}, DType::I32});
  const Value next = s + g.constant(Tensor::i32({}, {1}));
  g.update(s, next);
  g.output(next, "n");
  Executable exe = compile(g, kReference);
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(exe.run({}).at("n"), Tensor::i32({}, {i}));
  EXPECT_GE(exe.plan().in_place_results, 1);
}

TEST(Executable, StatesOutliveARecompile) {
  Graph g;
  const Value x = g.input("x", {{kBatch}, DType::F32}), s = g.state("n", {{}, DType::I32});
  g.update(s, s + g.dim_value(kBatch));
  g.output(ops::neg(x), "y");
  Executable exe = compile(g, kReference);
  exe.run({{"x", Tensor(DType::F32, {3})}});
  exe.run({{"x", Tensor(DType::F32, {4})}});
  EXPECT_EQ(exe.read_state("n"), Tensor::i32({}, {7}));
}

TEST(Executable, HandlesSupplyInputsAndFeedsReplaceThem) {
  Graph g;
  const Value x = g.input("x", {{2}, DType::F32}), past = g.input("past", {{2}, DType::F32});
  g.output(x + past, "next");
  Executable exe = compile(g, kReference);
  EXPECT_FALSE(exe.has_handle("past"));
  EXPECT_ERROR(exe.read_handle("past"), kInvalid, "Input 'past' has no handle");
  const Tensor start = Tensor::f32({2}, {100, 200}), one = Tensor::f32({2}, {1, 1});
  exe.bind_handle("past", start);
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({2}, {101, 201}));
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({2}, {101, 201}));
  exe.feed("next", "past");
  exe.run({{"x", one}});
  EXPECT_EQ(exe.read_handle("past"), Tensor::f32({2}, {101, 201}));
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({2}, {102, 202}));
  EXPECT_EQ(start, Tensor::f32({2}, {100, 200}));  // the caller's tensor is not written
  EXPECT_EQ(exe.run({{"x", one}, {"past", one}}).at("next"), Tensor::f32({2}, {2, 2}));  // an explicit input wins
  EXPECT_EQ(exe.read_handle("past"), Tensor::f32({2}, {2, 2}));
  exe.bind_handle("past", start);
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({2}, {101, 201}));
  EXPECT_ERROR(exe.feed("next", "past"), kInvalid, "is fed already");
  EXPECT_ERROR(exe.feed("next", "y"), kInvalid, "There is no input 'y'");
  Executable copy = exe.clone();
  EXPECT_EQ(copy.run({{"x", one}}).at("next"), Tensor::f32({2}, {102, 202}));
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({2}, {102, 202}));
}

TEST(Executable, AFedInputHasTheSizesOfWhatFedIt) {
  Graph g;
  const Value x = g.input("x", {{kBatch}, DType::F32}), past = g.input("past", {{kBatch}, DType::F32});
  g.output(x + past, "next");
  Executable exe = compile(g, kReference);
  exe.bind_handle("past", Tensor(DType::F32, {2}));
  exe.feed("next", "past");
  const Tensor four = Tensor::f32({4}, {1, 2, 3, 4});
  exe.run({{"x", four}, {"past", four}});
  EXPECT_ERROR(exe.run({{"x", Tensor(DType::F32, {2})}}), kInvalid, "is 2 and 4 at once");  // not the handle's two
  EXPECT_EQ(exe.run({{"x", four}}).at("next"), Tensor::f32({4}, {3, 6, 9, 12}));
}

TEST(Executable, AFeedBeginsWithTheRunAfterIt) {
  Graph g;
  const Value x = g.input("x", {{1}, DType::F32}), past = g.input("past", {{1}, DType::F32});
  g.output(x + past, "next");
  Executable exe = compile(g, kReference);
  const Tensor one = Tensor::f32({1}, {1}), ten = Tensor::f32({1}, {10}), hundred = Tensor::f32({1}, {100});
  exe.bind_handle("past", hundred);
  exe.run({{"x", one}, {"past", ten}});
  exe.feed("next", "past");
  EXPECT_EQ(exe.run({{"x", one}}).at("next"),
            Tensor::f32({1}, {101}));  // the handle, not what an earlier run was given
  EXPECT_EQ(exe.run({{"x", one}}).at("next"), Tensor::f32({1}, {102}));
}

TEST(Executable, ASealedOutputLeavesLaterRunsAlone) {
  Graph g;
  g.output(g.input("x", {{2}, DType::F32}), "same");
  Executable exe = compile(g, kReference);
  const Tensor first = Tensor::f32({2}, {1, 2}), second = Tensor::f32({2}, {3, 4});
  Tensor kept = exe.run_slots(std::array{first})[0];
  kept.seal();
  EXPECT_EQ(exe.run_slots(std::array{second})[0], second);
  EXPECT_EQ(kept, first);
}

TEST(Executable, OutputsMayBeInputsParamsConstantsAndViews) {
  Graph g;
  const Value x = g.input("x", {{2, 3}, DType::F32}), w = g.param("w", {{3}, DType::F32});
  g.output(x, "x");
  g.output(w, "w");
  g.output(g.constant(kW), "c");
  g.output(ops::narrow(ops::reshape(ops::neg(x), {.new_shape = {6}}), {.axis = 0, .start = 2, .len = 3}), "view");
  g.output(ops::narrow(x, {.axis = 0, .start = 1, .len = 1}), "row");
  Executable exe = compile(g, kReference);
  exe.set_param("w", kW);
  NamedTensors out = exe.run({{"x", kX}});
  EXPECT_EQ(out["x"], kX);
  EXPECT_EQ(out["w"], kW);
  EXPECT_EQ(out["c"], kW);
  EXPECT_EQ(out["view"], Tensor::f32({3}, {-3, -4, -5}));
  EXPECT_EQ(out["row"], Tensor::f32({1, 3}, {4, 5, 6}));
  EXPECT_EQ(exe.plan().steps.size(), 1u);  // neg; views need no step
  EXPECT_EQ(exe.plan().views, 3);
}

TEST(Executable, ParamsOfRegionsAreTheParents) {
  auto body = std::make_shared<Graph>("body");
  body->output(body->input("v", {{3}, DType::F32}) * body->param("w", {{3}, DType::F32}), "y");
  Graph g;
  const Value x = g.input("x", {{3}, DType::F32}), p = g.input("p", {{}, DType::Bool});
  g.output(ops::if_(p, x, {.then_branch = body, .else_branch = body}), "y");
  Executable exe = compile(g, kReference);
  ASSERT_EQ(exe.params().size(), 1u);
  exe.set_param("w", kW);
  EXPECT_EQ(exe.run({{"x", kW}, {"p", Tensor(DType::Bool, {})}}).at("y"), Tensor::f32({3}, {1, 100, 10000}));
}

TEST(Executable, RunTimeFaultsNameTheNodeAndTheExecutableLives) {
  Graph g;
  const Value a = g.input("a", {{2}, DType::I32}), b = g.input("b", {{2}, DType::I32});
  g.output(ops::div(a, b), "q");
  Executable exe = compile(g, kReference);
  EXPECT_ERROR(exe.run({{"a", Tensor::i32({2}, {6, 6})}, {"b", Tensor::i32({2}, {2, 0})}}), kRuntime,
               "running %2 (div)");
  EXPECT_EQ(exe.run({{"a", Tensor::i32({2}, {6, 6})}, {"b", Tensor::i32({2}, {2, 3})}}).at("q"),
            Tensor::i32({2}, {3, 2}));
}

TEST(Executable, ClonesShareWeightsAndRunAtTheSameTime) {
  Executable exe = compile(small_graph(), kReference);
  exe.set_param("w", kW);
  std::vector<Executable> clones;
  for (int i = 0; i < 4; ++i) clones.push_back(exe.clone());
  std::vector<std::thread> threads;
  std::vector<bool> ok(4);
  std::vector<int> good(4, 0);
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int run = 0; run < 200; ++run)
        good[i] += clones[i].run({{"x", kX}}).at("y") == Tensor::f32({2, 3}, {2, 21, 301, 5, 51, 601}) ? 1 : 0;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, std::vector<int>(4, 200));
}

TEST(Executable, AnotherWeightOfACloneIsNotThatOfTheOthers) {
  for (const char* device : {"reference", "cpu"}) {
    Graph g;
    const Value x = g.input("x", {{1, 2}, DType::F32}), w = g.param("w", {{2, 2}, DType::F32});
    g.output(ops::matmul(x, w * w), "y");  // w * w is computed once
    Executable exe = compile(g, {.device = device});
    const auto y = [&](Executable& e) { return e.run({{"x", Tensor::f32({1, 2}, {1, 10})}}).at("y"); };
    exe.set_param("w", Tensor::f32({2, 2}, {1, 2, 3, 4}));
    const Tensor before = Tensor::f32({1, 2}, {91, 164}), after = Tensor::f32({1, 2}, {11, 0});
    EXPECT_EQ(y(exe), before);
    Executable copy = exe.clone(), third = exe.clone();
    EXPECT_EQ(y(copy), before);
    copy.set_param("w", Tensor::f32({2, 2}, {1, 0, 1, 0}));
    EXPECT_EQ(y(copy), after);
    EXPECT_EQ(y(exe), before);
    exe.set_param("w", Tensor::f32({2, 2}, {1, 0, 1, 0}));
    EXPECT_EQ(y(third), before);
    EXPECT_EQ(y(exe), after);
  }
}

// ---- active extent ----

// Row-wise: softmax(x * w) of [batch, 3].
static Graph row_wise(const Dim& rows) {
  Graph g;
  const Value x = g.input("x", {{rows, 3}, DType::F32}), w = g.param("w", {{3}, DType::F32});
  g.output(ops::softmax(x * w), "y");
  return g;
}

static void expect_first_rows(const Tensor& actual, const Tensor& expected) {
  ASSERT_LE(expected.bytes().size(), actual.bytes().size());
  EXPECT_EQ(std::memcmp(actual.bytes().data(), expected.bytes().data(), expected.bytes().size()), 0);
}

TEST(ActiveExtent, RunsTheFirstRowsOnly) {
  Rng rng(5);
  for (const Dim& rows : {kBatch, Dim(8)}) {
    Executable exe = compile(row_wise(rows), kReference);
    exe.set_param("w", kW);
    const Tensor x = rng.tensor({8, 3});
    const Tensor full = exe.run({{"x", x}}).at("y");
    for (const int64_t actual : {5, 1, 8, 0, 3}) {
      exe.set_active_extent(actual, 8);
      const Tensor y = exe.run({{"x", x}}).at("y");
      const auto bytes = static_cast<size_t>(actual * 3) * 4;
      expect_first_rows(y, Tensor::borrow(DType::F32, {actual, 3}, full.bytes().first(bytes)));
    }
    EXPECT_EQ(exe.stats().full_extent_runs, 0);
    EXPECT_ERROR(exe.set_active_extent(9, 8), kInvalid, "Active extent (9 of 8) is out of range");
  }
  Executable exe = compile(row_wise(kBatch), kReference);
  exe.set_param("w", kW);
  exe.run({{"x", Tensor(DType::F32, {8, 3})}});
  exe.set_active_extent(3, 7);  // of a program that the next run may need
  EXPECT_ERROR(exe.run({{"x", Tensor(DType::F32, {8, 3})}}), kInvalid,
               "upper size (7) is not the size of ?0 in this run (8)");
  Executable bound = compile(row_wise(kBatch), {.device = "reference", .dims = {{symbols::kBatch, 8}}});
  EXPECT_ERROR(bound.set_active_extent(3, 7), kInvalid,
               "upper size (7) is not the size of ?0 the executable is compiled for (8)");
}

TEST(ActiveExtent, FallsBackToAllRowsWhereAStepMixesThem) {
  Graph g;
  const Value x = g.input("x", {{kBatch, 3}, DType::F32});
  g.output(ops::softmax(x, {.axis = 0}), "y");
  std::string report;
  set_log([&](LogLevel, std::string_view text) { report = text; });
  Executable exe = compile(g, kReference);
  Rng rng(5);
  const Tensor in = rng.tensor({4, 3});
  const Tensor full = exe.run({{"x", in}}).at("y");
  exe.set_active_extent(2, 4);
  EXPECT_EQ(exe.run({{"x", in}}).at("y"), full);
  EXPECT_EQ(exe.stats().full_extent_runs, 1);
  EXPECT_NE(report.find("(softmax) works along the rows"), std::string::npos) << report;
  set_log({});
}

// Rows that are added to a state of all rows: neither fewer nor, which would be broadcast, one.
TEST(ActiveExtent, FallsBackWhereOtherSizesWantAllRows) {
  Graph g;
  const Value x = g.input("x", {{kBatch, 2}, DType::F32}), s = g.state("s", {{4, 2}, DType::F32});
  g.update(s, x + s);
  g.output(x + s, "y");
  CompileOptions options = kReference;
  options.dims.set(symbols::kBatch, 4);
  Executable exe = compile(g, options);
  const Tensor rows = Tensor::f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const int64_t actual : {3, 1}) {
    exe.reset_states();
    exe.set_active_extent(actual, 4);
    EXPECT_EQ(exe.run({{"x", rows}}).at("y"), rows);
    EXPECT_EQ(exe.read_state("s"), rows);
  }
  EXPECT_EQ(exe.stats().full_extent_runs, 2);
}

TEST(ActiveExtent, OfAnotherUpperSizeIsAnErrorEveryTime) {
  CompileOptions options = kReference;
  options.dims.set(symbols::kBatch, 4);
  Executable exe = compile(small_graph(kBatch), options);
  for (int i = 0; i < 2; ++i) EXPECT_ERROR(exe.set_active_extent(1, 2), kInvalid, "upper size (2)");
}

TEST(ActiveExtent, RowsThatAreNotInUseAreNotLookedAt) {
  Graph g;
  g.output(ops::neg(g.input("x", {{kBatch, 1}, DType::F32})), "y");
  CompileOptions options = kReference;
  options.dims.set(symbols::kBatch, 3);
  Executable exe = compile(g, options);
  const Tensor x = Tensor::f32({3, 1}, {1, NAN, NAN});
  exe.set_active_extent(1, 3);
  EXPECT_FALSE(exe.debug_first_nan_node({{"x", x}}));
  exe.set_active_extent(2, 3);
  EXPECT_EQ(exe.debug_first_nan_node({{"x", x}})->element, 1);
}

// Attention's second result, which nobody reads, has heads in front of its rows.
TEST(ActiveExtent, HoldsWhereEveryValueIsLookedAt) {
  Graph g;
  const Value x = g.input("x", {{1, kBatch, 2, 4}, DType::F32});
  g.output(
      ops::attention(
          x, x, x,
          {.num_heads = 2, .head_dim = 4, .layout = ops::AttentionLayout::kBshd, .mask_kind = ops::MaskKind::kCausal}),
      "y");
  CompileOptions options{.device = "cpu"};
  options.dims.set(symbols::kBatch, 6);
  Rng rng(1);
  const Tensor rows = rng.tensor({1, 6, 2, 4});
  std::vector<Tensor> results;
  for (const bool trace : {false, true}) {
    options.debug.nan_trace = trace;
    Executable exe = compile(g, options);
    exe.set_active_extent(4, 6);
    results.push_back(exe.run({{"x", rows}}).at("y"));
    EXPECT_EQ(exe.stats().full_extent_runs, 0) << trace;
  }
  EXPECT_EQ(results[0].at(0), results[1].at(0));
}

TEST(ActiveExtent, FallsBackWhereAViewDependsOnTheSize) {
  // The last row, as a view: its place is another one at each size, and so the run uses all rows.
  Graph last;
  const Value x = last.input("x", {{kBatch, 2}, DType::F32});
  last.output(ops::neg(ops::narrow(x, {.axis = 0, .start = Dim::symbol(symbols::kBatch, 1, -1), .len = 1})), "y");
  // Fixed rows that fewer active ones do not have.
  Graph fixed;
  const Value z = fixed.input("x", {{kBatch, 2}, DType::F32});
  fixed.output(ops::neg(ops::narrow(z, {.axis = 0, .start = 2, .len = 2})), "y");
  const Tensor in = Tensor::f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const Graph& g : {last, fixed}) {
    Executable exe = compile(g, kReference);
    const Tensor full = exe.run({{"x", in}}).at("y");
    exe.set_active_extent(2, 4);
    EXPECT_EQ(exe.run({{"x", in}}).at("y"), full);
    EXPECT_EQ(exe.stats().full_extent_runs, 1);
  }
}

// A part that begins at the size is another part when fewer rows are in use, and so is a sum over as many: such runs
// give what all rows give, or what the rows in use alone do, but nothing between.
TEST(ActiveExtent, PartsThatBeginAtTheSizeAreThoseOfTheRowsInUse) {
  const Dim rows = Dim::symbol(symbols::kBatch);
  std::vector<std::string> all = {"reference", "cpu"};
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && d.available) all.push_back(d.name);
  Rng rng(4);
  const Tensor table = rng.tensor({4, 20}), in = rng.tensor({6, 12});
  for (const bool weight : {false, true})
    for (int kind = 0; kind < 7; ++kind) {
      Graph g;
      auto body = std::make_shared<Graph>("body");
      const Value carry = body->input("carry", {{4, 20}, DType::F32});
      body->output(ops::tanh(carry), "next");
      const TensorType type{{4, 20}, DType::F32};
      const Value x = g.input("x", {{rows, 12}, DType::F32}), w = weight ? g.param("w", type) : g.input("w", type);
      const Value y = kind == 0   ? ops::narrow(w, {.axis = 1, .start = rows, .len = 2})
                      : kind == 1 ? ops::slice(w, {.start = {3, rows}, .step = {-1, 2}, .len = {4, 2}})
                      : kind == 2 ? ops::reduce_sum(ops::expand(w, {.target_shape = {rows, 4, 20}}), {.axes = {0}})
                      : kind == 3 ? ops::narrow(w, {.axis = 1, .start = 2, .len = rows})
                      : kind == 4 ? ops::narrow(x, {.axis = 1, .start = rows, .len = 2})
                      : kind == 5 ? ops::scan(Values{w}, {.body = body, .length = rows})
                                  : ops::narrow(ops::tanh(w), {.axis = 1, .start = rows, .len = 2});
      g.output(ops::tanh(y), "y");
      g.output(ops::neg(x), "z");
      for (const std::string& device : all) {
        SCOPED_TRACE(str(device, " kind ", kind, weight ? ", a weight" : ""));
        const auto run = [&](int64_t upper, int64_t actual) {
          CompileOptions options{.device = device, .dims = {{symbols::kBatch, upper}}};
          options.webgpu.min_loop_work = 0;
          Executable exe = compile(g, options);
          NamedTensors inputs = {{"x", Tensor::borrow(DType::F32, {upper, 12}, in.bytes().first(upper * 48)).clone()}};
          if (weight)
            exe.set_param("w", table);
          else
            inputs["w"] = table;
          exe.set_active_extent(actual, upper);
          const Tensor result = exe.run(inputs).at("y");
          return std::pair(result, exe.stats().full_extent_runs > 0);
        };
        const auto [actual, is_full] = run(6, 3);
        const Tensor expected = run(is_full ? 6 : 3, is_full ? 6 : 3).first;
        const auto in_use = actual.bytes().first(expected.bytes().size());
        EXPECT_TRUE(near(Tensor::borrow(DType::F32, expected.sizes(), in_use), expected, kTranscendental));
      }
    }
}

TEST(ActiveExtent, DimValuesAreTheActualSizeWhateverTheSteps) {
  Graph g;
  const Value x = g.input("x", {{kBatch, 2}, DType::F32}), n = g.state("n", {{}, DType::I32});
  g.update(n, n + g.dim_value(kBatch));
  g.output(ops::softmax(x, {.axis = 0}), "y");
  Executable exe = compile(g, kReference);
  exe.run({{"x", Tensor(DType::F32, {8, 2})}});
  exe.set_active_extent(3, 8);
  exe.run({{"x", Tensor(DType::F32, {8, 2})}});
  EXPECT_EQ(exe.read_state("n"), Tensor::i32({}, {11}));
}

}  // namespace rlx::test
