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

int64_t checks(const Executable& exe) {
  int64_t count = 0;
  for (const StepInfo& s : exe.plan().steps) count += s.kernel == "webgpu/check_indices" ? 1 : 0;
  return count;
}

}  // namespace

using CheckIndicesOnWebGpu = WebGpu;

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
