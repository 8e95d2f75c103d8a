// Programs of one graph for several sizes: they are kept, and share weights and states.
#include <gtest/gtest.h>

#include "rlx/ops.h"
#include "rlx/runtime.h"
#include "support/random.h"

namespace rlx::test {

namespace {

const Dim kRows = Dim::symbol(symbols::kBatch);

// A cache of rows at `past`, as a language model has it, behind a weight that the cpu packs.
Graph cached_product() {
  Graph g;
  const Value x = g.input("x", {{1, kRows, 32}, DType::F32}), past = g.input("past", {{1}, DType::I32});
  const Value w = g.param("w", {{32, 64}, DType::F32}), cache = g.state("cache", {{1, 16, 64}, DType::F32});
  const Value unused = g.state("unused", {{2}, DType::F32});
  const Value next = ops::kv_append(cache, ops::matmul(x, w), past);
  g.update(cache, next);
  g.update(unused, unused);
  g.output(ops::reduce_sum(next, {.axes = {1}}), "sum");
  return g;
}

Tensor ones(std::vector<int64_t> sizes, float value) {
  Tensor t(DType::F32, std::move(sizes));
  for (float& v : t.mutable_values<float>()) v = value;
  return t;
}

class KeptPrograms : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(KeptPrograms, ShareStatesAndComputeNothingAgain) {
  Executable exe = compile(cached_product(), {.device = GetParam(), .kept_programs = 3, .verify_plan = true});
  const Tensor w = ones({32, 64}, 0.5f);
  exe.set_param("w", w);
  int32_t length = 0;
  float sum = 0;
  const auto append = [&](int64_t rows, float value) {
    const NamedTensors out = exe.run({{"x", ones({1, rows, 32}, value)}, {"past", Tensor::i32({1}, {length})}});
    length += static_cast<int32_t>(rows);
    sum += static_cast<float>(rows) * value * 16;
    for (const float v : out.at("sum").values<float>()) ASSERT_EQ(v, sum);
  };
  append(4, 1);
  append(1, 2);
  append(1, 3);
  append(2, 1);
  EXPECT_EQ(exe.stats().compiles, 3);
  append(4, 2);
  append(1, 1);
  EXPECT_EQ(exe.stats().compiles, 3);
  EXPECT_EQ(exe.read_state("cache").sizes(), (std::vector<int64_t>{1, 16, 64}));
  // A weight that is replaced is replaced in all of them.
  exe.set_param("w", ones({32, 64}, 1));
  exe.reset_states();
  length = 0, sum = 0;
  for (const int64_t rows : {1, 2, 4, 1}) {
    const NamedTensors out = exe.run({{"x", ones({1, rows, 32}, 1)}, {"past", Tensor::i32({1}, {length})}});
    length += static_cast<int32_t>(rows);
    ASSERT_EQ(out.at("sum").values<float>()[0], static_cast<float>(length) * 32);
  }
  exe.set_state("unused", Tensor::f32({2}, {1, 2}));
  exe.run({{"x", ones({1, 2, 32}, 1)}, {"past", Tensor::i32({1}, {0})}});
  EXPECT_EQ(exe.read_state("unused"), Tensor::f32({2}, {1, 2}));
}

TEST_P(KeptPrograms, TheOldestGoesWhenThereAreTooMany) {
  Executable exe = compile(cached_product(), {.device = GetParam(), .kept_programs = 2});
  exe.set_param("w", ones({32, 64}, 1));
  const auto run = [&](int64_t rows) {
    return exe.run({{"x", ones({1, rows, 32}, 1)}, {"past", Tensor::i32({1}, {0})}}).at("sum").values<float>()[0];
  };
  run(1), run(2), run(1), run(2);
  EXPECT_EQ(exe.stats().compiles, 2);
  run(3), run(2);
  EXPECT_EQ(exe.stats().compiles, 3);
  EXPECT_EQ(run(1), 96);  // rows 1 and 2 are still there
  EXPECT_EQ(exe.stats().compiles, 4);
}

TEST_P(KeptPrograms, AnExtentIsOfTheSizesOfTheRun) {
  Executable exe = compile(cached_product(), {.device = GetParam(), .kept_programs = 2});
  exe.set_param("w", ones({32, 64}, 1));
  const auto run = [&](int64_t rows, int32_t past) {
    return exe.run({{"x", ones({1, rows, 32}, 1)}, {"past", Tensor::i32({1}, {past})}}).at("sum").values<float>()[0];
  };
  exe.set_active_extent(3, 8);
  EXPECT_EQ(run(8, 0), 3 * 32);
  EXPECT_THROW(run(1, 3), Error);  // the extent says eight rows
  exe.set_active_extent(1, 1);
  EXPECT_EQ(run(1, 3), 4 * 32);
  exe.set_active_extent(2, 8);
  EXPECT_EQ(run(8, 4), 6 * 32);
}

// What is computed of weights alone may depend on the sizes all the same: where a part begins, how a row is repeated.
TEST(KeptProgramsOfAllDevices, PartsOfWeightsAreThoseOfTheirSizes) {
  Graph g;
  const Dim cols = Dim::symbol(symbols::kSeq);
  g.output(ops::neg(g.input("x", {{kRows, cols}, DType::F32})), "y");
  const Value w = g.param("w", {{4, 20}, DType::F32}), pair = g.param("pair", {{1, 2, 1}, DType::F32});
  const Value part = ops::narrow(w, {.axis = 1, .start = kRows, .len = 2});
  g.output(part, "part");
  g.output(ops::tanh(part), "tanh");  // its attributes are the same for all sizes, and so are those of a view's reader
  g.output(ops::tanh(ops::narrow(ops::reshape(w, {.new_shape = {80}}), {.axis = 0, .start = kRows, .len = 8})), "flat");
  g.output(ops::slice(w, {.start = {3, kRows}, .step = {-1, 2}, .len = {4, 2}}), "slice");
  const Value wide = ops::neg(ops::cast(ops::tanh(part), {.to = DType::F64}));  // on the host of a GPU
  g.output(ops::neg(ops::cast(wide, {.to = DType::F32})), "host");
  Values parts = {part};
  for (int64_t i = 0; i < 9; ++i) parts.push_back(ops::narrow(w, {.axis = 1, .start = i, .len = 3}));
  g.output(ops::concat(parts, {.axis = 1}), "parts");  // in several steps
  g.output(ops::expand(pair, {.target_shape = {kRows, 2, cols}}), "expanded");
  // Only the operand's type says how much of a weight it is, or how it lies.
  const Value v = g.param("v", {{120}, DType::F32}), doubles = g.param("doubles", {{5, 3}, DType::F64});
  const Value folded = ops::reshape(v, {.new_shape = {kRows, -1}}), first = g.constant(Tensor::i32({1, 2}, {-1, 0}));
  g.output(ops::tanh(ops::gather_nd(folded, first)), "last row");
  const Value sum = ops::reduce_sum(ops::narrow(doubles, {.axis = 0, .len = kRows}), {.axes = {0}});
  g.output(ops::neg(ops::cast(sum, {.to = DType::F32})), "sum");  // of a step on the host of a GPU
  std::vector<std::string> all = {"reference", "cpu"};
  for (const DeviceInfo& d : devices())
    if (d.name == "webgpu" && d.available) all.push_back(d.name);
  Rng rng(1);
  const NamedTensors weights = {{"w", rng.tensor({4, 20})},
                                {"pair", rng.tensor({1, 2, 1})},
                                {"v", rng.tensor({120})},
                                {"doubles", rng.tensor({5, 3}, DType::F64)}};
  for (const std::string& device : all)
    for (const int kept : {1, 3}) {
      SCOPED_TRACE(str(device, " keeps ", kept));
      Executable exe = compile(g, {.device = device, .kept_programs = kept});
      for (const auto& [name, value] : weights) exe.set_param(name, value);
      for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 3}, {3, 1}, {5, 2}, {1, 3}, {2, 5}, {5, 2}}) {
        SCOPED_TRACE(str(rows, " x ", columns));
        const NamedTensors in = {{"x", rng.tensor({rows, columns})}};
        Executable fixed = compile(g, {.device = device, .dims = {{symbols::kBatch, rows}, {symbols::kSeq, columns}}});
        for (const auto& [name, value] : weights) fixed.set_param(name, value);
        const NamedTensors expected = fixed.run(in);
        for (const auto& [name, value] : exe.run(in)) EXPECT_EQ(value, expected.at(name)) << name;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, KeptPrograms, testing::Values("reference", "cpu"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace rlx::test
