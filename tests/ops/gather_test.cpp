#include <complex>
#include <cstring>

#include "support/op_cases.h"

namespace rlx::test {

OP_CASES(gather) {
  const Tensor table = Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6});
  add({table, Tensor::i32({2}, {2, 0})}).expect({Tensor::f32({2, 2}, {5, 6, 1, 2})}, kExact);
  add({table, Tensor::i64({2, 2}, {-1, 0, -3, 1})}).expect({Tensor::f32({2, 2, 2}, {5, 6, 1, 2, 1, 2, 3, 4})}, kExact);
  add({table, Tensor::i32({}, {1})}).expect({Tensor::f32({2}, {3, 4})}, kExact);
  add({table, Tensor::i32({1}, {1})}, {.axis = 1}).expect({Tensor::f32({3, 1}, {2, 4, 6})}, kExact);
  add({Tensor::i32({2}, {7, 8}), Tensor::i32({}, {1})}).expect({Tensor::i32({}, {8})}, kExact);
  // Index by index, with the shape of ONNX: leading dims, indices, trailing dims.
  for (const DType d : {DType::F32, DType::BF16, DType::F64, DType::I8, DType::I64, DType::Bool, DType::C64})
    for (const int64_t axis : {1, -2})
      add({random({2, 5, 3}, d), integers({4, 2}, -5, 4)}, {.axis = axis})
          .check([](const Tensors& in, const Tensors& out) {
            ASSERT_EQ(out[0].sizes(), (std::vector<int64_t>{2, 4, 2, 3}));
            const size_t size = size_of(in[0].dtype());
            for (int64_t o = 0; o < 2; ++o)
              for (int64_t k = 0; k < 8; ++k)
                for (int64_t t = 0; t < 3; ++t) {
                  const auto index = static_cast<int64_t>(in[1].at(k));
                  const int64_t from = (o * 5 + (index + 5) % 5) * 3 + t, to = (o * 8 + k) * 3 + t;
                  EXPECT_EQ(std::memcmp(out[0].bytes().data() + static_cast<size_t>(to) * size,
                                        in[0].bytes().data() + static_cast<size_t>(from) * size, size),
                            0);
                }
          });
  for (const DType d : {DType::F32, DType::F16, DType::I64})
    for (const int64_t width : {1, 3, 64, 700}) {
      add({random({50, width}, d), integers({300}, -50, 49)});
      add({random({3, 50, width}, d), integers({7, 40}, -50, 49, DType::I64)}, {.axis = 1});
    }
  add({random({50, 1024}), integers({4200}, -50, 49)});  // streamed past the caches
  add({table, Tensor(DType::I32, {0})}).expect({Tensor(DType::F32, {0, 2})});
  add({Tensor(DType::F32, {0, 2}), Tensor(DType::I32, {3, 0})}).expect({Tensor(DType::F32, {3, 0, 2})});
  add_error({table, Tensor::i32({1}, {3})}, {}, "Index (3) is out of range for size (3)");
  {
    Tensor bad = integers({100'000}, 0, 2);  // the first one is reported, whoever meets it
    for (const size_t at : {30'000u, 30'001u, 99'999u}) bad.mutable_values<int32_t>()[at] = static_cast<int32_t>(at);
    add_error({table, bad}, {}, "Index (30000) is out of range for size (3)");
  }
  add_error({table, Tensor::i32({1}, {-4})}, {}, "Index (-4) is out of range for size (3)");
  add_error({Tensor(DType::F32, {0, 2}), Tensor::i32({1}, {0})}, {}, "Index (0) is out of range for size (0)");
  add_error({table, Tensor::f32({1}, {0})}, {}, "Indices dtype (f32) is not i32 or i64");
  add_error({table, Tensor::i32({1}, {0})}, {.axis = 2}, "Axis (2) is out of range for rank (2)");
}

OP_CASES(gather_backward) {
  add({Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor::i32({3}, {1, 0, 1})}, {.axis = 0, .table_shape = {3, 2}})
      .expect({Tensor::f32({3, 2}, {3, 4, 6, 8, 0, 0})}, kExact);
  for (const int64_t axis : {0, 1, 2, -1})
    add({random({2, 3}, DType::F64), Tensor::i64({2, 3}, {0, 1, -1, 1, 1, 0})}, {.axis = 0, .table_shape = {3}})
        .check([axis](const Tensors& in, const Tensors&) {
          std::vector<int64_t> sizes{2, 2, 2};
          const auto at = static_cast<size_t>(normalize_axis(axis, 3));
          sizes[at] = 3;
          Rng own(7);
          const Tensor x = own.tensor(sizes, DType::F64);
          const Tensor y = run(ops::gather, {x, in[1]}, {.axis = axis})[0];
          const Tensor dy = own.tensor(y.sizes(), DType::F64);
          const Tensor dx = run(ops::gather_backward, {dy, in[1]},
                                {.axis = axis, .table_shape = Shape(std::span<const int64_t>(sizes)).dims()})[0];
          EXPECT_TRUE(matches_finite_differences(
              [&](const Tensor& table) {
                return run(ops::gather, {table, in[1]}, {.axis = axis})[0];
              },
              x, dy, dx));
        });
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    add({random({2, 700, 30}, d), integers({700}, -9, 8)}, {.axis = 1, .table_shape = {2, 9, 30}});
    add({random({20, 30, 1100}, d), integers({20, 30}, 0, 8, DType::I64)}, {.axis = 0, .table_shape = {9, 1100}});
  }
  add({Tensor(DType::F32, {0, 2}), Tensor(DType::I32, {0})}, {.axis = 0, .table_shape = {2, 2}})
      .expect({Tensor(DType::F32, {2, 2})}, kExact);
  add_error({random({2, 2}), Tensor::i32({2}, {0, 3})}, {.axis = 0, .table_shape = {3, 2}},
            "Index (3) is out of range");
  add_error({random({2, 2}), Tensor::i32({2}, {0, 1})}, {.axis = 0, .table_shape = {3, 4}},
            "Gradient shape ([2, 2]) is not [2, 4]");
  add_error({random({2, 2}), Tensor::i32({2}, {0, 1})}, {.axis = 0, .table_shape = {-3, 2}}, "has a negative size");
  add_error({random({2, 2}), random({2})}, {.axis = 0, .table_shape = {3, 2}}, "Indices dtype (f32)");
}

OP_CASES(scatter_add) {
  add({Tensor::f32({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor::i32({3}, {2, 0, -1})}, {.rows = 3})
      .expect({Tensor::f32({3, 2}, {3, 4, 0, 0, 6, 8})}, kExact);
  add({Tensor::i32({3}, {2147483647, 1, 5}), Tensor::i64({3}, {1, 1, 0})}, {.rows = 2})
      .expect({Tensor::i32({2}, {5, -2147483647 - 1})}, kExact);
  using C = std::complex<float>;
  const C z[] = {{1, 2}, {3, 4}}, sum[] = {{4, 6}};
  add({Tensor::of<C>(DType::C64, {2}, z), Tensor::i32({2}, {0, 0})}, {.rows = 1})
      .expect({Tensor::of<C>(DType::C64, {1}, sum)}, kExact);
  // It is the transpose of gather: <gather(t, i), u> = <t, scatter_add(u, i)>.
  for (const DType d : {DType::F32, DType::F64})
    add({random({9, 2, 3}, d), integers({9}, -4, 3)}, {.rows = 4}).check([d](const Tensors& in, const Tensors& out) {
      const Tensor table = Rng(3).tensor({4, 2, 3}, d), rows = run(ops::gather, {table, in[1]})[0];
      double left = 0, right = 0;
      for (int64_t i = 0; i < rows.num_elements(); ++i) left += rows.at(i) * in[0].at(i);
      for (int64_t i = 0; i < table.num_elements(); ++i) right += table.at(i) * out[0].at(i);
      EXPECT_NEAR(left, right, 1e-5);
    });
  // The sum is rounded once: 2048 + 1 + 1 in f16.
  add({Tensor::from_doubles(DType::F16, {3}, std::vector<double>{2048, 1, 1}), Tensor::i32({3}, {0, 0, 0})},
      {.rows = 1})
      .expect({Tensor::from_doubles(DType::F16, {1}, std::vector<double>{2050})}, kExact);
  add({random({5, 3}, DType::BF16), integers({5}, 0, 6)}, {.rows = 7});
  // Many updates of few rows, few of many; wide rows and single elements.
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    add({random({20'000}, d), integers({20'000}, 0, 1)}, {.rows = 2});
    add({random({900, 17}, d), integers({900}, -3, 2)}, {.rows = 3});
    add({random({50, 1300}, d), integers({50}, 0, 999)}, {.rows = 1000});
  }
  for (const DType d : {DType::F32, DType::I8, DType::U16, DType::C64, DType::I64}) {
    Tensor skewed = integers({5'000}, 0, 499);  // one row has most of them
    for (size_t i = 0; i < 4'500; ++i) skewed.mutable_values<int32_t>()[i] = 7;
    add({random({5'000, 3}, d), skewed}, {.rows = 500});
  }
  add({Tensor(DType::F32, {0, 2}), Tensor(DType::I32, {0})}, {.rows = 2}).expect({Tensor(DType::F32, {2, 2})}, kExact);
  add_error({random({2, 2}), Tensor::i32({2}, {0, 2})}, {.rows = 2}, "Index (2) is out of range for size (2)");
  add_error({random({2, 2}), Tensor::i32({3}, {0, 0, 0})}, {.rows = 2},
            "Numbers of updates and indices (2 and 3) differ");
  add_error({random({2, 2}), Tensor::i32({1, 2}, {0, 0})}, {.rows = 2}, "Indices rank (2) is not 1");
  add_error({random({2, 2}), Tensor::i32({2}, {0, 0})}, {.rows = -1}, "Rows (-1) is negative");
  add_error({random({}), Tensor::i32({1}, {0})}, {.rows = 1}, "Updates rank (0) is less than 1");
  add_error({random({2}, DType::Bool), Tensor::i32({2}, {0, 0})}, {.rows = 1}, "has no arithmetic");
}

TEST(GatherInfer, SymbolsOfTableAndIndicesMeet) {
  Graph g;
  const Value table = g.param("table", {{Dim::symbol(16), 64}, DType::F32});
  const Value ids = g.input("ids", {{Dim::symbol(0), Dim::symbol(1)}, DType::I32});
  EXPECT_EQ(ops::gather(table, ids).shape(), (Shape{Dim::symbol(0), Dim::symbol(1), 64}));
  const Value dy = ops::gather(table, ids);
  EXPECT_EQ(ops::gather_backward(dy, ids, {.axis = 0, .table_shape = {Dim::symbol(16), 64}}).shape(), table.shape());
}

}  // namespace rlx::test
