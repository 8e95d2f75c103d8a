#include <cstring>
#include <limits>

#include "fixture_file.h"
#include "rlx/runtime.h"
#include "support/op_cases.h"

namespace rlx::test {

using ops::ScatterReduction;

namespace {
constexpr ScatterReduction kReductions[] = {ScatterReduction::kNone, ScatterReduction::kAdd, ScatterReduction::kMul,
                                            ScatterReduction::kMax, ScatterReduction::kMin};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor f16(std::vector<int64_t> sizes, std::vector<double> values) {
  return Tensor::from_doubles(DType::F16, std::move(sizes), values);
}
}  // namespace

OP_CASES(scatter_elements) {
  const Tensor x = Tensor::f32({1, 5}, {1, 2, 3, 4, 5}), u = Tensor::f32({1, 2}, {1.5, 2.25});
  add({x, Tensor::i64({1, 2}, {1, -2}), u}, {.axis = 1}).expect({Tensor::f32({1, 5}, {1, 1.5, 3, 2.25, 5})}, kExact);
  // Twice the same place: the later one wins, or both count.
  const Tensor twice = Tensor::i64({1, 2}, {1, 1});
  const float results[] = {2.25, 5.75, 6.75, 2.25, 1.5};
  for (size_t r = 0; r < 5; ++r)
    add({x, twice, u}, {.axis = 1, .reduction = kReductions[r]})
        .expect({Tensor::f32({1, 5}, {1, results[r], 3, 4, 5})}, kExact);
  add({Tensor::f32({3}, {1, kNan, 3}), Tensor::i32({3}, {0, 1, 2}), Tensor::f32({3}, {kNan, 1, 4})},
      {.reduction = ScatterReduction::kMax})
      .expect({Tensor::f32({3}, {kNan, kNan, 4})}, kExact);
  add({Tensor::f32({2}, {kNan, 3}), Tensor::i32({2}, {0, 1}), Tensor::f32({2}, {1, kNan})},
      {.reduction = ScatterReduction::kMin})
      .expect({Tensor::f32({2}, {kNan, kNan})}, kExact);
  // Sums are rounded once, integers wrap.
  for (const DType d : {DType::F16, DType::F32})
    add({Tensor::from_doubles(d, {1}, std::vector<double>{2048}), Tensor::i32({2}, {0, 0}),
         Tensor::from_doubles(d, {2}, std::vector<double>{1, 1})},
        {.reduction = ScatterReduction::kAdd})
        .expect({Tensor::from_doubles(d, {1}, std::vector<double>{2050})}, kExact);
  add({Tensor::i32({1}, {2147483647}), Tensor::i32({1}, {0}), Tensor::i32({1}, {1})},
      {.reduction = ScatterReduction::kAdd})
      .expect({Tensor::i32({1}, {-2147483647 - 1})}, kExact);
  add({Tensor::i64({1}, {int64_t{1} << 62}), Tensor::i32({1}, {0}), Tensor::i64({1}, {(int64_t{1} << 62) + 3})},
      {.reduction = ScatterReduction::kMax})
      .expect({Tensor::i64({1}, {(int64_t{1} << 62) + 3})}, kExact);
  const FixtureFile file("onnx_move.npz");
  for (int i = 0; file.has(str("put", i, "_x")); ++i)
    for (const ScatterReduction r : kReductions) {
      const std::string name = str("put", i, "_");
      add({file[name + "x"], file[name + "indices"], file[name + "updates"]},
          {.axis = file.integer(name + "axis"), .reduction = r})
          .expect({file[str(name, name_of(r))]}, {.rel = 1e-5, .abs = 1e-5});
    }
  // What is scattered is found again where no index comes twice.
  for (const DType d : all_dtypes()) {
    Tensor indices(DType::I32, {3, 4});
    for (int32_t i = 0; i < 12; ++i) indices.mutable_values<int32_t>()[static_cast<size_t>(i)] = i % 4 * 5 % 7 - 7;
    add({random({4, 7}, d), indices, random({3, 4}, d)}, {.axis = 1}).check([](const Tensors& in, const Tensors& out) {
      const size_t size = size_of(in[0].dtype());
      Tensor expected = in[0].clone();
      for (int64_t i = 0; i < 12; ++i) {
        const int64_t to = i / 4 * 7 + static_cast<int64_t>(in[1].at(i)) + 7;
        std::memcpy(expected.mutable_bytes().data() + static_cast<size_t>(to) * size,
                    in[2].bytes().data() + static_cast<size_t>(i) * size, size);
      }
      EXPECT_EQ(out[0], expected);
    });
  }
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::I64})
    for (const ScatterReduction r : {ScatterReduction::kNone, ScatterReduction::kAdd}) {
      add({random({90, 200}, d), integers({90, 300}, -200, 199, DType::I64), random({90, 300}, d)},
          {.axis = 1, .reduction = r});
      add({random({200, 90}, d), integers({300, 80}, -200, 199), random({300, 80}, d)}, {.axis = 0, .reduction = r});
      add({random({20, 30, 4, 5}, d), integers({20, 60, 3, 5}, -30, 29), random({20, 60, 3, 5}, d)},
          {.axis = 1, .reduction = r});
    }
  for (const DType d : {DType::F32, DType::BF16, DType::U32})
    for (const ScatterReduction r : kReductions)
      add({random({8, 9}, d), integers({3, 9}, 0, 7), random({3, 9}, d)}, {.reduction = r});
  add({x, Tensor(DType::I32, {1, 0}), Tensor(DType::F32, {1, 0})}, {.axis = 1}).expect({x}, kExact);
  add_error({x, Tensor::i32({1, 1}, {5}), Tensor::f32({1, 1}, {0})}, {.axis = 1},
            "Index (5) is out of range for size (5)");
  {
    Tensor bad = integers({300, 200}, 0, 1);  // the first one is reported, whoever meets it
    for (const size_t at : {30'000u, 30'001u, 59'999u}) bad.mutable_values<int32_t>()[at] = static_cast<int32_t>(at);
    add_error({random({2, 200}), bad, random({300, 200})}, {}, "Index (30000) is out of range for size (2)");
  }
  add_error({x, twice, Tensor::f32({1, 1}, {0})}, {.axis = 1}, "Updates shape ([1, 1]) is not [1, 2]");
  add_error({x, twice, Tensor::i32({1, 2}, {0, 0})}, {.axis = 1}, "dtypes (f32, i32) differ");
  add_error({x, Tensor::i32({2, 1}, {0, 0}), random({2, 1})}, {.axis = 1}, "Indices shape ([2, 1]) is larger");
  add_error({random({1, 5}, DType::Bool), twice, random({1, 2}, DType::Bool)},
            {.axis = 1, .reduction = ScatterReduction::kAdd}, "Operand dtype (bool) cannot be reduced (add)");
  add_error({x, u, u}, {.axis = 1}, "Indices dtype (f32)");
}

OP_CASES(scatter_nd) {
  const Tensor x = Tensor::f32({4}, {1, 2, 3, 4});
  add({x, Tensor::i64({3, 1}, {3, -4, 3}), Tensor::f32({3}, {9, 8, 7})})
      .expect({Tensor::f32({4}, {8, 2, 3, 7})}, kExact);
  add({Tensor::i32({2, 2}, {1, 2, 3, 4}), Tensor::i32({2, 1}, {1, 1}), Tensor::i32({2, 2}, {10, 20, 30, 40})},
      {.reduction = ScatterReduction::kAdd})
      .expect({Tensor::i32({2, 2}, {1, 2, 43, 64})}, kExact);
  // No index at all: the update is for all of x.
  add({x, Tensor(DType::I32, {2, 0}), Tensor::f32({2, 4}, {1, 0, 1, 0, 2, 2, 2, 2})},
      {.reduction = ScatterReduction::kAdd})
      .expect({Tensor::f32({4}, {4, 4, 6, 6})}, kExact);
  add({f16({2}, {2048, 1}), Tensor::i32({2, 1}, {0, 0}), f16({2}, {1, 1})}, {.reduction = ScatterReduction::kAdd})
      .expect({f16({2}, {2050, 1})}, kExact);
  const FixtureFile file("onnx_move.npz");
  for (int i = 0; file.has(str("put_nd", i, "_x")); ++i)
    for (const ScatterReduction r : kReductions) {
      const std::string name = str("put_nd", i, "_");
      add({file[name + "x"], file[name + "indices"], file[name + "updates"]}, {.reduction = r})
          .expect({file[str(name, name_of(r))]}, {.rel = 1e-5, .abs = 1e-5});
    }
  // It undoes gather_nd.
  for (const DType d : all_dtypes())
    add({random({5, 2, 3}, d), Tensor::i32({3, 2}, {4, 0, -5, 1, 2, -1}), random({3, 3}, d)})
        .check([](const Tensors& in, const Tensors& out) {
          EXPECT_EQ(run(ops::gather_nd, {out[0], in[1]})[0], in[2]);
          const Tensor old = run(ops::gather_nd, {in[0], in[1]})[0];
          EXPECT_EQ(run(ops::scatter_nd, {out[0], in[1], old})[0], in[0]);
        });
  for (const DType d : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I16, DType::I64})
    for (const ScatterReduction r : {ScatterReduction::kNone, ScatterReduction::kAdd}) {
      add({random({30, 20}, d), integers({900, 2}, -20, 19), random({900}, d)}, {.reduction = r});
      add({random({30, 700}, d), integers({90, 1}, -30, 29, DType::I64), random({90, 700}, d)}, {.reduction = r});
    }
  for (const DType d : {DType::F32, DType::F16, DType::I8})
    for (const ScatterReduction r : kReductions)
      add({random({6, 9}, d), integers({4, 1}, 0, 5), random({4, 9}, d)}, {.reduction = r});
  add({x, Tensor(DType::I32, {0, 1}), Tensor(DType::F32, {0})}).expect({x}, kExact);
  add_error({x, Tensor::i32({2, 1}, {0, 4}), Tensor::f32({2}, {0, 0})}, {}, "Index (4) is out of range for size (4)");
  add_error({random({2, 3}), Tensor::i32({1, 2}, {0, -4}), Tensor::f32({1}, {0})}, {},
            "Index (-4) is out of range for size (3)");
  add_error({x, Tensor::i32({2, 1}, {0, 1}), Tensor::f32({2, 1}, {0, 0})}, {}, "Updates shape ([2, 1]) is not [2]");
  add_error({x, Tensor::i32({1, 2}, {0, 0}), Tensor::f32({1}, {0})}, {}, "more than the 1 axes");
  add_error({x, Tensor::i32({}, {0}), Tensor::f32({}, {0})}, {}, "Indices rank (0) is less than 1");
  add_error({random({2}, DType::C64), Tensor::i32({1, 1}, {0}), random({1}, DType::C64)},
            {.reduction = ScatterReduction::kMul}, "Operand dtype (c64) cannot be reduced (mul)");
}

// The result takes x's bytes where nobody needs x any more, and only there.
TEST(Scatter, WorksInPlace) {
  for (const DType d : {DType::F32, DType::F16})
    for (const ScatterReduction r : kReductions) {
      Graph g;
      const Value x = ops::neg(g.input("x", {{6, 40}, d})), indices = g.input("i", {{6, 40}, DType::I32});
      const Value y = ops::scatter_elements(x, indices, x, {.axis = 1, .reduction = r});  // x is read elsewhere
      const Value z = ops::scatter_elements(y, indices, g.input("u", {{6, 40}, d}), {.axis = 1, .reduction = r});
      const Value rows = g.input("rows", {{3, 1}, DType::I32});
      g.output(ops::neg(ops::scatter_nd(z, rows, g.input("v", {{3, 40}, d}), {.reduction = r})), "y");
      Rng rng(5);
      const NamedTensors inputs = {{"x", rng.tensor({6, 40}, d)},
                                   {"i", rng.integers({6, 40}, -40, 39)},
                                   {"u", rng.tensor({6, 40}, d)},
                                   {"rows", rng.integers({3, 1}, -6, 5)},
                                   {"v", rng.tensor({3, 40}, d)}};
      Executable apart = compile(g, {.device = "reference", .in_place = false});
      const Tensor expected = apart.run(inputs).at("y");
      for (const char* device : {"reference", "cpu"}) {
        Executable exe = compile(g, {.device = device, .verify_plan = true, .poison = true});
        EXPECT_TRUE(near(exe.run(inputs).at("y"), expected, d == DType::F32 ? kAccumulation : kHalf))
            << device << " " << name_of(r);
        EXPECT_GE(exe.plan().in_place_results, 2);
      }
    }
}

}  // namespace rlx::test
